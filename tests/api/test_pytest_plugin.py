"""The fixture `clew_examine` in a real pytest, as somebody's test suite has it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

SUITE = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, leaks):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
        self.leaks = leaks

    def forward(self, x):
        out = self.layers(x)
        return out - out.mean(0, keepdim=True) if self.leaks else out

torch.manual_seed(0)
x = torch.randn(64, 8)
batch = (x, (x[:, 0] > 0).long() + (x[:, 1] > 0.3).long())

def test_sound(clew_examine):
    asked = ["batch-leak", "cannot-overfit-batch"]
    report = clew_examine(Net(False), nn.CrossEntropyLoss(), batch, only=asked)
    assert report.ok

def test_broken(clew_examine):
    clew_examine(Net(True), nn.CrossEntropyLoss(), batch, only=["batch-leak", "learning-rate-too-high"])
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "test_net.py").write_text(SUITE)
    return tmp_path


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "100"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


def test_each_experiment_is_a_result_of_its_own(suite: Path) -> None:
    done = run(suite, "-v", "--junitxml=out.xml")
    assert done.returncode == 1, done.stdout + done.stderr
    for line in (
        "test_sound SUBPASSED[cannot-overfit-batch]",
        "test_sound SUBPASSED[batch-leak]",
        "test_sound PASSED",
        "test_broken SUBFAILED[batch-leak]",
        "test_broken SUBSKIPPED[learning-rate-too-high]",
        "test_broken FAILED",
    ):
        assert line in done.stdout, done.stdout
    assert "the output for one sample depends on the other samples" in done.stdout
    assert "  fix  " in done.stdout
    assert "pytest_plugin.py" not in done.stdout.split("short test summary")[0]
    cases = ElementTree.parse(suite / "out.xml").getroot().iter("failure")
    assert any("batch-leak" in str(case.get("message")) for case in cases)


def test_a_pytest_without_subtests_fails_once_and_names_every_experiment(suite: Path) -> None:
    done = run(suite, "-v", "-p", "no:subtests")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "SUBFAILED" not in done.stdout
    assert "test_sound PASSED" in done.stdout
    assert "clew_examine: 1 failed, 0 passed, 1 not judged" in done.stdout
    assert "! batch-leak" in done.stdout or "x batch-leak" in done.stdout or "✗ batch-leak" in done.stdout


def test_what_can_not_be_examined_fails_the_test_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "test_none.py").write_text("def test_it(clew_examine):\n    clew_examine('no model')\n")
    done = run(tmp_path)
    assert done.returncode == 1
    assert "CannotExamine: expected a model (nn.Module), not str" in done.stdout


def test_loading_the_plugin_imports_nothing_heavy() -> None:
    program = (
        "import clew.api.pytest_plugin, sys; print({'torch', 'numpy', 'rich', 'click'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
