"""A run that went NaN, its repro folder, and `clew replay`, in real processes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from clew_command import clew

from clew.cli.verbs import interpret

SCRIPT = """
import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
np.random.seed(0)


def scaled(x):
    return x / x.std(dim=1, keepdim=True)


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.hidden = nn.Linear(6, width)
        self.dropout = nn.Dropout(0.2)
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        noise = torch.as_tensor(np.random.randn(*x.shape), dtype=torch.float32)
        return self.out(self.dropout(torch.relu(self.hidden(scaled(x) + 0.01 * noise)))).squeeze(1)


model = Net(8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(20):
    x = torch.randn(16, 6)
    if step == 12:
        x[5] = 1.0
    loss = nn.functional.mse_loss(model(x), x[:, 0])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("trained")
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("replay")
    (folder / "train.py").write_text(SCRIPT)
    ended = clew(folder, "run", "--dir", "runs", "train.py")
    assert ended.stdout == "trained\n", ended.stderr
    return folder


def saved(run: Path) -> Path:
    return next((run / "runs").glob("*/repro/step-12"))


def python(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Without Clew on the path: the folder stands alone."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
        check=False,
    )


def test_the_operation_is_named_after_the_process_has_gone(run: Path) -> None:
    ended = clew(run, "replay", "--dir", "runs")
    assert ended.returncode == 1, ended.stderr
    assert "step 12 of train.py, replayed" in ended.stdout
    assert "division by 0" in ended.stdout
    assert "train.py:11" in ended.stdout


def test_json_holds_the_culprit_of_now_and_of_then(run: Path) -> None:
    ended = clew(run, "replay", str(saved(run)), "--json")
    data = json.loads(ended.stdout)
    assert (data["step"], data["finite"]) == (12, False)
    for culprit in (data["culprit"], data["before"]):
        assert (culprit["op"], culprit["line"], culprit["samples"]) == ("div", 11, [5])


def test_nothing_is_pickled(run: Path) -> None:
    assert sorted(path.name for path in saved(run).iterdir() if path.is_file()) == [
        "rebuild.py",
        "repro.json",
        "repro.py",
        "tensors.safetensors",
        "test_repro.py",
    ]


def test_the_folder_stands_alone_and_its_test_passes_once_the_source_is_fixed(run: Path) -> None:
    script = run / "train.py"
    assert "loss: nan" in python(saved(run), "repro.py").stdout
    assert python(saved(run), "-m", "pytest", "-q", "test_repro.py").returncode == 1
    script.write_text(SCRIPT.replace("keepdim=True)", "keepdim=True).clamp(min=1e-6)"))
    try:
        ended = python(saved(run), "-m", "pytest", "-q", "test_repro.py")
        assert ended.returncode == 0, ended.stdout
        again = clew(run, "replay", "--dir", "runs")
        assert again.returncode == 0
        assert "step 12 of train.py is finite now" in again.stdout
    finally:
        script.write_text(SCRIPT)


def test_a_model_made_by_the_user_takes_the_place_of_the_saved_one(run: Path) -> None:
    ended = clew(run, "replay", "--dir", "runs", "--model", "train.py:Net(8)")
    assert ended.returncode == 1, ended.stderr
    assert "division by 0" in ended.stdout


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("train.py:Net(9)", "hidden.weight (9, 6) instead of (8, 6)"),
        ("train.py:Nothing()", "there is no Nothing in train.py"),
        ("other=train.py:Net(8)", "the step has no model other; available: model"),
        ("train.py", "is not a model"),
        ("gone.py:Net(8)", "no such file: gone.py"),
        ("train.py:Net(1 +)", "is not a Python expression"),
        ("train.py:scaled(8)", "failed"),
    ],
)
def test_a_model_that_does_not_fit_gets_one_clear_line(
    run: Path, wrong: str, told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(run)
    assert told in refused(capsys, str(saved(run)), "--model", wrong)


def test_a_missing_or_damaged_folder_gets_one_clear_line(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, content in (
        ("repro.json", b"{ half"),
        ("repro.json", b'{"format": 1}'),
        ("tensors.safetensors", b""),
    ):
        broken = tmp_path / "broken"
        broken.mkdir(exist_ok=True)
        for path in filter(Path.is_file, saved(run).iterdir()):
            (broken / path.name).write_bytes(path.read_bytes())
        (broken / name).write_bytes(content)
        assert str(broken) in refused(capsys, str(broken))
    (tmp_path / "empty").mkdir()
    assert "there is no repro.json in" in refused(capsys, str(tmp_path / "empty"))


def test_of_several_processes_the_one_whose_own_loss_went_wrong_is_taken(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "runs" / saved(run).parents[1].name
    shutil.copytree(saved(run).parents[1], copy)
    shutil.copytree(copy / "repro", copy / "repro-rank1")
    finite = copy / "repro" / "step-12" / "repro.json"
    finite.write_text(json.dumps({**json.loads(finite.read_text()), "where": "gradient"}))
    assert interpret(["replay", "--dir", str(tmp_path / "runs"), "--json"]) == 1
    assert "repro-rank1" in json.loads(capsys.readouterr().out)["folder"]


def test_other_versions_are_reported_in_one_line(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = shutil.copytree(saved(run), tmp_path / "step-12")
    data = json.loads((copy / "repro.json").read_text())
    data["versions"].update(torch="1.9.0", python="2.7.18")
    (copy / "repro.json").write_text(json.dumps(data))
    assert interpret(["replay", str(copy)]) == 1
    assert "saved with torch 1.9.0 and Python 2.7.18, run with torch" in capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    code = interpret(["replay", *arguments])
    told = capsys.readouterr()
    assert (code, told.out, len(told.err.splitlines())) == (2, "", 1)
    return told.err
