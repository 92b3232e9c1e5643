"""`clew profile --try --batch-sizes` of a script: what is tried, and that training is unchanged."""

from __future__ import annotations

from pathlib import Path

import pytest
from program_process import run_warm, start, wait

from clew.records.tried_changes import COMPILE, FOREACH, BatchSizes, TriedChange
from clew.store.read.run_reader import open_run

SCRIPT = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x, y = torch.randn(96, 8), torch.randint(3, (96,))
loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
total = 0.0
for inputs, labels in loader:
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(inputs), labels)
    SPOIL
    loss.backward()
    optimizer.step()
for p in model.parameters():
    total += p.double().sum().item()
print(total.hex(), torch.rand(1).item().hex())
"""


WITHOUT_COMPILER = {"CXX": "/nowhere/c++"}  # compiling takes too long for a test


def profiled(folder: Path, script: Path, *options: str) -> tuple[str, str]:
    command = [
        "-m",
        "clew",
        "profile",
        "--dir",
        folder,
        "--try-limit",
        "2",
        "--windows",
        "1",
        "--no-python",
        *options,
        script,
    ]
    # Not `run_warm`: torch has read CXX there when it was imported.
    ended = wait(start(command, **WITHOUT_COMPILER, OMP_NUM_THREADS="1"))
    assert ended.code == 0, ended.err
    return ended.out, ended.err


@pytest.fixture
def script(tmp_path: Path) -> Path:
    file = tmp_path / "train.py"
    file.write_text(SCRIPT.replace("SPOIL", "pass"))
    return file


def test_a_script_is_tried_when_it_is_over_and_trains_as_without(script: Path, tmp_path: Path):
    out, err = profiled(tmp_path / "runs", script, "--try", "--batch-sizes", "1,4,16")
    assert out == run_warm([script]).out, "the same weights and the same random numbers"
    [path] = (tmp_path / "runs").iterdir()
    facts = open_run(path).ranks[0].facts
    tried = {f.data["name"]: TriedChange.from_json(f.data) for f in facts if f.kind == "attempt"}
    assert {FOREACH, COMPILE} <= set(tried)
    assert "C++ compiler" in tried[COMPILE].reason
    [sizes] = [BatchSizes.from_json(f.data) for f in facts if f.kind == "batch_sizes"]
    assert [row.size for row in sizes.rows] == [1, 4, 8, 16]
    assert "Expected more than 1 value per channel" in sizes.rows[0].reason
    assert sizes.current == 8
    assert "tested on a snapshot" in err
    assert "batch sizes" in err


def test_a_step_that_can_not_be_run_again_is_reported_with_what_would_help(script: Path, tmp_path: Path):
    script.write_text(SCRIPT.replace("SPOIL", "loss = loss + len(open(__file__).readline())"))
    _, err = profiled(tmp_path / "runs", script, "--try", "--batch-sizes", "4,16")
    assert "nothing could be tested" in err
    assert "clew.try_faster(model, step=" in " ".join(err.split())


def test_a_script_that_fails_is_not_kept_waiting(script: Path, tmp_path: Path):
    script.write_text(script.read_text() + "raise ValueError('of its own')\n")
    command = [
        "-m",
        "clew",
        "profile",
        "--dir",
        tmp_path / "runs",
        "--windows",
        "1",
        "--no-python",
        "--try",
        script,
    ]
    ended = wait(start(command, **WITHOUT_COMPILER, OMP_NUM_THREADS="1"))
    assert ended.code == 1
    assert "nothing tested: the script did not finish normally" in ended.err
    assert "tested on a snapshot" not in ended.err
