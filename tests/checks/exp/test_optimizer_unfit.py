from __future__ import annotations

import pytest
from fake_run import FakeRun, findings

from clew.checks.exp.optimizer_unfit import OptimizerUnfit
from clew.records.finding import Severity


def made(own: list[float], other: list[float]) -> FakeRun:
    rows = [
        {"name": "SGD", "own": True, "rate": 0.1, "gains": own},
        {"name": "Adam", "rate": 0.001, "gains": other},
    ]
    return FakeRun().experiment("optimizer-unfit", start=2.0, steps=40, rows=rows, line=["train.py", 30])


@pytest.mark.parametrize(
    ("own", "severity"),
    [(0.25, Severity.ADVICE), (0.1, Severity.ADVICE), (0.09, Severity.WARNING), (-0.5, Severity.WARNING)],
)
def test_an_optimizer_far_behind_at_its_best_rate_is_reported(own: float, severity: Severity) -> None:
    (found,) = findings(OptimizerUnfit(), made([own] * 3, [1.0] * 3))
    assert found.severity is severity
    assert found.fix == "torch.optim.Adam(model.parameters(), lr=0.001)"
    assert found.evidence[-1].text == f"over 3 shuffles it made {own:.0%} of the other's progress"


@pytest.mark.parametrize(
    ("own", "other"),
    [
        ([0.26] * 3, [1.0] * 3),  # not far enough behind
        ([0.1, 0.1, 0.3], [1.0] * 3),  # one shuffle disagrees
        ([0.1] * 2, [1.0] * 2),  # too few shuffles
        ([0.0] * 3, [0.2] * 3),  # the other one hardly learns either
    ],
)
def test_a_difference_that_may_be_chance_is_not(own: list[float], other: list[float]) -> None:
    assert not findings(OptimizerUnfit(), made(own, other))


def test_without_a_better_one_there_is_nothing_to_say() -> None:
    run = FakeRun().experiment("optimizer-unfit", start=2.0, rows=[{"name": "SGD", "gains": [0.0] * 3}])
    assert not findings(OptimizerUnfit(), run)
