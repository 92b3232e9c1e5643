"""`clew run --prove`: the finding says what a trial of its fix gave, and training is as without Clew."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from program_process import clew_run, run_warm

SCRIPT = """
import sys
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

seen = []


def noted(value):
    seen.append(float(value))
    return value * len(seen) / len(seen)


torch.manual_seed(0)
x, y = load_digits(return_X_y=True)
data = TensorDataset(torch.tensor(x, dtype=torch.float32) / 16, torch.tensor(y))
loader = DataLoader(data, batch_size=32, shuffle=True)
body = [nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 10)]
model = nn.Sequential(*body, LAST)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
criterion = nn.CrossEntropyLoss()
for epoch in range(3):
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        IMPURE
        loss.backward()
        optimizer.step()
torch.save([model.state_dict(), torch.get_rng_state()], sys.argv[1])
"""


def trained(folder: Path, *command: str | Path, last: str = "nn.Softmax(dim=1)", impure: str = "pass") -> Any:
    script = folder / "train.py"
    script.write_text(SCRIPT.replace("LAST", last).replace("IMPURE", impure))
    ended = run_warm([*command, script, folder / "weights.pt"])
    assert ended.code == 0, ended.err
    return ended, (folder / "weights.pt").read_bytes()


def proven(folder: Path, **program: str) -> tuple[dict[str, Any], Any, bytes]:
    report = folder / "report.json"
    ended, weights = trained(folder, *clew_run(folder / "runs", "--prove", "--json", report), **program)
    return json.loads(report.read_text()), ended, weights


def test_the_fix_is_tried_and_training_is_bit_identical(tmp_path: Path) -> None:
    report, ended, weights = proven(tmp_path)
    first = report["findings"][0]
    assert first["check"] == "softmax-before-cross-entropy"
    assert first["proof"]["helped"] is True
    assert first["proof"]["after"] < first["proof"]["before"]
    assert "tested on a snapshot: with this fix" in ended.err.replace("\n", " ")
    assert trained(tmp_path)[1] == weights


def test_a_healthy_program_has_nothing_to_try(tmp_path: Path) -> None:
    report, ended, _ = proven(tmp_path, last="nn.Identity()")
    assert [f for f in report["findings"] if f["severity"] != "advice"] == []
    assert "snapshot" not in ended.err


def test_a_step_that_can_not_be_run_again_is_reported(tmp_path: Path) -> None:
    _, ended, _ = proven(tmp_path, impure="loss = noted(loss)")
    assert "no fix could be tested" in ended.err
