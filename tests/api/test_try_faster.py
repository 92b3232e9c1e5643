"""`clew.try_faster` and `clew.batch_sizes` on the arguments of a call."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from fake_step_clock import data, everything, many_parameters, same
from torch import nn

import clew
from clew.labs.profiler.step_experiments import compiled_step
from clew.records.errors import CannotExamine
from clew.records.tried_changes import COMPILE, FOREACH


def test_from_python_a_model_is_tried_and_left_as_it_was(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(compiled_step, "impossible", lambda: "not here")
    model = many_parameters(3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model.eval()
    before = everything(model, optimizer)
    report = clew.try_faster(model, F.cross_entropy, data(), optimizer, time_limit=120.0)
    after = everything(model, optimizer)
    assert [name for name in before if not same(before[name], after[name])] == []
    assert report[FOREACH].tried
    assert report[COMPILE].reason == "not here"
    assert "SGD(…, foreach=True)" in str(report)
    assert report.best is None or report.best.helps
    with pytest.raises(KeyError):
        report["faster"]


def test_from_python_batch_sizes_are_those_around_the_batch_given():
    model = nn.Sequential(nn.Linear(4, 4))
    report = clew.batch_sizes(model, F.cross_entropy, data(8), time_limit=120.0)
    assert [row.size for row in report.sizes.rows] == [2, 4, 8, 16, 32]
    assert report.sizes.current == 8
    assert report.to_json()["rows"][0]["size"] == 2
    assert "samples/s" in str(report)


@pytest.mark.parametrize("sizes", [[0], [8, -2], [2.5], [True]])
def test_sizes_that_are_none_are_refused_in_one_line(sizes: list[int]):
    with pytest.raises(CannotExamine, match="integer of at least 1"):
        clew.batch_sizes(nn.Linear(4, 4), F.cross_entropy, data(), sizes=sizes)
