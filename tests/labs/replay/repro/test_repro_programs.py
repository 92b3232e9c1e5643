"""Steps of real programs, saved by a run in its own process and run again elsewhere."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from clew.cli.verbs import interpret
from clew.labs.replay.repro.saved_sources import CannotRebuild
from clew.labs.replay.repro.saved_step import replay_saved

HEAD = """
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
"""
NET = """

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 3, bias=False)

    def forward(self, x):
        h = self.a(x)
        return h / h.norm(dim=1, keepdim=True)


"""
PLAIN = """
x, y = torch.randn(40, 4), torch.randn(40, 3)
x[22] = 0
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
"""
END = """
    opt.zero_grad()
    loss.backward()
    opt.step()
"""

PROGRAMS = {
    "a slice": HEAD + NET + PLAIN + "for i in range(4):\n"
    "    part = slice(i * 10, i * 10 + 10)\n"
    "    loss = F.mse_loss(net(x[part]), y[part])" + END,
    "names that the script itself has": HEAD + NET + PLAIN + "for step in range(4):\n"
    "    run = compute = main = sys = step * 10\n"
    "    results, HERE = net(x[run:run + 10]), y[step * 10:compute + 10]\n"
    "    loss = F.mse_loss(results, HERE) + 0 * (main + sys)" + END,
    "two models": HEAD + NET + PLAIN + "head = nn.Linear(3, 3)\n"
    "def train(xb, yb):\n"
    "    z = net(xb)\n"
    "    loss = F.mse_loss(head(z), yb)" + END + "for i in range(4):\n"
    "    train(x[i * 10:i * 10 + 10], y[i * 10:i * 10 + 10])\n",
    "a batch drawn where the model is called": HEAD
    + NET.replace("h.norm(dim=1, keepdim=True)", "x[:, :1].clamp_min(-1.9)")
    .replace("h / ", "h * torch.log(1.9 + ")
    .replace("clamp_min(-1.9)", "clamp_min(-1.9))")
    + PLAIN
    + "for i in range(60):\n"
    "    loss = net(torch.randn(8, 4)).square().mean()" + END,
    "a variable that the model reads": HEAD
    + NET.replace("h.norm(dim=1, keepdim=True)", "SCALE[TABLE['k']]")
    + PLAIN
    + "def made():\n    return torch.tensor([1.0, 0.0])\n"
    "SCALE = made()\n"
    "TABLE = {'k': 0}\n"
    "for i in range(4):\n"
    "    TABLE = {'k': int(i == 2)}\n"
    "    loss = F.mse_loss(net(x[:9]), y[:9])" + END,
    "a name that is set in one branch only": HEAD + NET + PLAIN + "weight = torch.ones(1)\n"
    "for i in range(4):\n"
    "    out = net(x[i * 10:i * 10 + 10])\n"
    "    if i == 7:\n"
    "        weight = 2 * out.sum()\n"
    "    loss = weight * F.mse_loss(out, y[i * 10:i * 10 + 10])" + END,
}


def python(*command: str | Path, cwd: Path, clew: bool = False) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH" or clew}
    environment.update(OMP_NUM_THREADS="1", COLUMNS="120")
    return subprocess.run(
        [sys.executable, *map(str, command)],
        cwd=cwd,
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
        check=False,
    )


def saved(folder: Path, program: str, **files: str) -> Path:
    """The folder that a run of this program leaves."""
    for name, text in {"train": program, **files}.items():
        (folder / f"{name}.py").write_text(text)
    ended = python("-m", "clew", "run", "--dir", folder / "runs", "train.py", cwd=folder, clew=True)
    assert ended.returncode == 0, ended.stderr
    return next((folder / "runs").glob("*/repro/step-*"))


def run_script(
    repro: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[Any, str]:
    """`python repro.py`, but for the time that a process takes; what it exits with, and says."""
    for name in ("repro", "rebuild"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(sys, "path", [str(repro), *sys.path])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(repro / "repro.py"), run_name="__main__")
    return ended.value.code, capsys.readouterr().out


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_step_fails_again_until_it_is_fixed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    repro = saved(tmp_path, PROGRAMS[name])
    data = json.loads((repro / "repro.json").read_text())
    assert (data["shown"]["seen"], data["recipe"] is not None) == (True, True)
    found = replay_saved(repro)[1].culprit
    assert found is not None
    assert {"op": found.op, "line": found.line, "phase": found.phase}.items() <= data["culprit"].items()
    code, told = run_script(repro, monkeypatch, capsys)
    assert code == 1
    assert f"train.py:{found.line})" in told
    lines = PROGRAMS[name].splitlines()
    lines[(found.line or 0) - 1] = "        return h"
    (tmp_path / "train.py").write_text("\n".join(lines))
    code, told = run_script(repro, monkeypatch, capsys)
    assert (code, told.splitlines()[-1]) == (0, f"step {data['step']} is finite now")


ELSEWHERE = (
    HEAD
    + NET.replace("h / h.norm(dim=1, keepdim=True)", "h")
    + PLAIN
    + """
class Trainer:
    def loss(self, xb, yb):
        self.last = torch.log(xb.norm(dim=1)).mean()
        return F.mse_loss(net(xb), yb) + self.last

    def backward(self, loss):
        opt.zero_grad()
        loss.backward()
        opt.step()


trainer = Trainer()
for i in range(4):
    trainer.backward(trainer.loss(x[i * 10:i * 10 + 10], y[i * 10:i * 10 + 10]))
"""
)


def test_a_loss_that_a_method_made_is_run_again_with_the_variables_of_the_script(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    repro = saved(tmp_path, ELSEWHERE)
    assert interpret(["replay", str(repro)]) == 1
    assert "self.last = torch.log(xb.norm(dim=1)).mean()" in capsys.readouterr().out
    alone = python(repro / "repro.py", cwd=tmp_path)
    assert (alone.returncode, "not finite: loss" in alone.stdout) == (1, True)


OUT_OF_REACH = ELSEWHERE.replace("        self.last =", "        print(len(xb))\n        self.last =")


def test_nothing_passes_where_the_code_of_the_loss_could_not_be_saved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    repro = saved(tmp_path, OUT_OF_REACH)
    assert interpret(["replay", str(repro)]) == 3
    assert "did not reproduce the failure" in " ".join(capsys.readouterr().out.split())
    alone = python(repro / "repro.py", cwd=tmp_path)
    assert (alone.returncode, alone.stdout[:14]) == (3, "not reproduced")
    tested = python("-m", "pytest", "-q", repro / "test_repro.py", cwd=tmp_path)
    assert tested.returncode == 1
    assert "not reproduced" in tested.stdout
    interpret(["why", "--dir", str(tmp_path / "runs"), "--json"])
    told = capsys.readouterr().out
    assert "a replay did not reproduce the failure: the code of the loss is not in it" in told


LOCAL = (
    HEAD
    + "def build(width):"
    + textwrap.indent(NET.replace("4, 3", "4, width"), "    ")
    + "    return Net()\n"
    + PLAIN.replace("Net()", "build(3)")
    + "for i in range(4):\n    loss = F.mse_loss(net(x[i * 10:i * 10 + 10]), y[i * 10:i * 10 + 10])"
    + END
)


def test_a_model_of_a_local_class_is_made_as_the_user_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    repro = saved(tmp_path, LOCAL)
    assert interpret(["replay", str(repro)]) == 2
    told = capsys.readouterr().err
    assert "net (Net) could not be saved; say how to create the model: --model" in told
    for spec in (f"{tmp_path}/train.py:build(3)", f"net={tmp_path}/train.py:build(3)"):
        assert interpret(["replay", str(repro), "--model", spec]) == 1
        assert "div is NaN" in capsys.readouterr().out


def test_a_module_that_has_moved_gets_one_clear_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = HEAD + "from parts import Net\n" + PLAIN + "for i in range(4):\n"
    program += "    loss = F.mse_loss(net(x[i * 10:i * 10 + 10]), y[i * 10:i * 10 + 10])" + END
    repro = saved(tmp_path, program, parts=HEAD + NET)
    (tmp_path / "parts.py").rename(tmp_path / "pieces.py")
    code, told = run_script(repro, monkeypatch, capsys)
    assert (code, len(told.splitlines())) == (2, 1)
    assert f"Net is needed from {tmp_path}/parts.py" in told
    with pytest.raises(CannotRebuild, match=r"Net is needed from .*parts\.py"):
        replay_saved(repro)
