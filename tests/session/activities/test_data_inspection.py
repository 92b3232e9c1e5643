"""`clew data`: nothing of it stays in torch when the run is over."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from clew.records.data_report import DataOptions
from clew.session.live_judge import RunStopped
from clew.session.run_options import RunOptions
from clew.session.session import Session


@pytest.mark.parametrize(
    "options",
    [
        DataOptions(measure=False, judge=False, go_on=True),
        DataOptions(measure=False, judge=False, go_on=True, loader="no such loader"),
        DataOptions(bare=True),
    ],
    ids=["inspected", "refused", "bare"],
)
def test_loaders_are_made_as_before_when_the_run_is_over(options: DataOptions, tmp_path: Path) -> None:
    before = vars(DataLoader)["__init__"]
    session = Session(RunOptions("train.py", root=tmp_path, data=options, quiet=True))
    session.start()
    assert vars(DataLoader)["__init__"] is not before
    train()
    session.close()
    assert vars(DataLoader)["__init__"] is before


def test_a_stopped_script_leaves_nothing_either(tmp_path: Path) -> None:
    before = vars(DataLoader)["__init__"]
    options = DataOptions(measure=False, judge=False)
    session = Session(RunOptions("train.py", root=tmp_path, data=options, quiet=True))
    session.start()
    with pytest.raises(RunStopped):
        train()
    session.close()
    assert vars(DataLoader)["__init__"] is before


def train() -> None:
    loader = DataLoader(TensorDataset(torch.randn(48, 3), torch.randint(0, 2, (48,))), batch_size=4)
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
