"""`clew check` on real scripts in real processes: what it prints, writes and returns, and that it leaves
no trace in a training that goes on."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from program_process import PROGRAMS, Ended, run_warm, start, wait

from clew.session.run_options import FAILED_ON

CHECK = ["-m", "clew", "check"]
TRAIN = """
import sys
import torch
from torch import nn
torch.manual_seed(0)
x = torch.randn(64, 8)
y = (x[:, 0] > 0).long()
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(int(sys.argv[1])):
    rows = torch.randperm(64)[:16]
    inputs, labels = x[rows]{fault}, y[rows]
    loss = nn.functional.cross_entropy(model(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("trained", step)
"""


def script(folder: Path, text: str = TRAIN, fault: str = "") -> Path:
    path = folder / "train.py"
    path.write_text(text.replace("{fault}", fault))
    return path


def check(folder: Path, *arguments: str | Path) -> Ended:
    command = [*CHECK, "--dir", folder / "runs", *arguments]
    return run_warm(command, COLUMNS="200")


def test_a_healthy_script_is_ended_after_its_first_steps_with_a_table(tmp_path: Path) -> None:
    only = ["--only", "input-ignored,cannot-overfit-batch"]
    ended = check(tmp_path, *only, "--steps", "4", script(tmp_path), "1000")
    assert (ended.code, ended.out) == (0, "")
    assert "the script was stopped after 4 steps; use --continue to keep training" in ended.err
    assert "input-ignored" in ended.err
    assert "2 passed" in ended.err
    assert "batch-leak" not in ended.err


def test_a_fault_gives_the_exit_code_for_it_unless_told_otherwise(tmp_path: Path) -> None:
    train = script(tmp_path, fault=" * 0")
    ended = check(tmp_path, "--only", "input-ignored", train, "1000")
    assert ended.code == FAILED_ON
    assert "1 failed" in ended.err
    assert check(tmp_path, "--only", "input-ignored", "--fail-on", "none", train, "1000").code == 0


def test_a_script_that_ends_sooner_is_checked_with_the_steps_that_it_made(tmp_path: Path) -> None:
    ended = check(tmp_path, "--only", "cannot-overfit-batch", script(tmp_path), "3")
    assert (ended.code, ended.out) == (0, "trained 2\n")
    assert "1 passed" in ended.err


def test_reports_are_written_for_machines(tmp_path: Path) -> None:
    report, junit = tmp_path / "report.json", tmp_path / "junit.xml"
    only = ["--only", "cannot-overfit-batch,batch-leak"]
    options = ["--quiet", "--json", report, "--junit", junit, *only]
    ended = check(tmp_path, *options, script(tmp_path), "1000")
    assert (ended.code, ended.out, ended.err) == (0, "", "")
    assert json.loads(report.read_text())["preflight"]["passed"] == ["cannot-overfit-batch", "batch-leak"]
    cases = ElementTree.parse(junit).getroot().iter("testcase")
    assert [case.get("name") for case in cases] == ["cannot-overfit-batch", "batch-leak"]


def test_experiments_that_find_no_time_say_so(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    options = ["--quiet", "--json", report, "--time-limit", "0.1"]
    assert check(tmp_path, *options, script(tmp_path), "1000").code == 0
    rows = json.loads(report.read_text())["preflight"]["experiments"]
    assert {row["reason"] for row in rows} == {"time limit reached"}


@pytest.mark.parametrize(
    ("text", "said", "code"),
    [
        ("print('hello')", "nothing was checked: the script never imported torch", 2),
        ("import torch", "nothing was checked: the script ended before its first training step", 2),
        ("import torch; 1 / 0", "nothing was checked: the script ended before its first training step", 1),
    ],
)
def test_a_script_that_does_not_train_gets_one_clear_line(
    text: str, said: str, code: int, tmp_path: Path
) -> None:
    command = ["-m", "clew", "check", "--dir", tmp_path / "runs", script(tmp_path, text)]
    ended = wait(start(command, OMP_NUM_THREADS="1", COLUMNS="200"))  # a process that has no torch yet
    assert ended.code == code
    assert said in ended.err.splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--only", "cannot-overfit", "train.py"], "did you mean cannot-overfit-batch?"),
        (["--skip", "zzz", "train.py"], "there is no experiment named 'zzz'; choose from: "),
        (["--only", "batch-leak", "--skip", "batch-leak", "train.py"], "exclude every experiment"),
        (["--lr", "3", "train.py"], "clew check has no option --lr; options of the script go after it"),
        (["nothing.py"], "no such script: nothing.py"),
        ([], "no script given: clew check train.py"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(arguments: list[str], said: str, tmp_path: Path) -> None:
    script(tmp_path)
    given = [tmp_path / a if a == "train.py" else a for a in arguments]
    ended = check(tmp_path, *given)
    assert ended.code == 2
    assert said in ended.err
    assert len(ended.err.splitlines()) == 1


# Where there is most to disturb: generators, workers, modes, buffers, closures, hooks, accumulation.
CONTINUED = [
    "every_state",
    "frozen_backbone",
    "gradient_accumulation",
    "lbfgs_closure",
    "mixed_precision",
    "random_streams",
    "trainer_class",
    "user_hooks",
    "worker_loader",
]


@pytest.mark.parametrize("name", CONTINUED)
def test_a_training_that_continues_is_bit_identical_to_one_without_a_check(name: str, tmp_path: Path) -> None:
    program = PROGRAMS / f"{name}.py"
    report = tmp_path / "report.json"
    options = ["--continue", "--quiet", "--fail-on", "none", "--json", report]
    checked = check(tmp_path, *options, program)
    assert checked == run_warm([program], COLUMNS="200")
    assert "tensors" in checked.out
    assert len(json.loads(report.read_text())["preflight"]["passed"]) > 0
