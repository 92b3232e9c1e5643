"""A loss that is not finite in evaluation alone."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

import clew
from clew.records.finding import Severity


def judged(tmp_path, evaluate, model=None):
    torch.manual_seed(0)
    model = model or nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with clew.attach(run_root=tmp_path, quiet=True) as session:
        for _ in range(6):
            model.train()
            F.cross_entropy(model(torch.randn(8, 4)), torch.randint(3, (8,))).backward()
            optimizer.step()
            optimizer.zero_grad()
            model.eval()
            with torch.no_grad():
                evaluate(model)
    return [f for f in session.verdict.findings if f.check == "non-finite"]


def test_a_bad_sample_of_the_evaluation_is_named(tmp_path):
    x = torch.randn(20, 4)
    x[13, 2] = math.nan
    (found,) = judged(tmp_path, lambda model: F.cross_entropy(model(x), torch.zeros(20, dtype=torch.long)))
    assert (found.severity, found.site.phase) == (Severity.WARNING, "eval")
    assert found.site.file == __file__
    assert "1 of 20 samples of the batch: 13" in found.evidence[0].text


def test_running_statistics_that_a_batch_has_spoilt_are_named(tmp_path):
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
    model[1].running_var[1] = math.nan
    (found,) = judged(tmp_path, lambda m: F.mse_loss(m(torch.ones(4, 4)), torch.ones(4, 3)), model)
    assert "1.running_var" in found.evidence[0].text


def test_a_selection_without_samples_is_no_fault(tmp_path):
    nothing = torch.zeros(0, dtype=torch.long)
    ignored = torch.full((5,), -100)
    assert not judged(tmp_path, lambda model: F.cross_entropy(model(torch.zeros(0, 4)), nothing))
    assert not judged(tmp_path, lambda model: F.cross_entropy(model(torch.zeros(5, 4)), ignored))
