from __future__ import annotations

import pytest
from fake_run import FakeRun, findings

from clew.checks.exp.loss_prefers_wrong import LossPrefersWrong
from clew.records.finding import Severity


def said(**data: object) -> list[str]:
    run = FakeRun().experiment("loss-prefers-wrong", **{"start": 1.0, "right": 0.5, **data})
    found = findings(LossPrefersWrong(), run)
    assert all(f.severity is Severity.ERROR for f in found)
    return [f.message for f in found]


@pytest.mark.parametrize(("right", "count"), [(1.021, 1), (1.02, 0), (0.1, 0)])
def test_right_answers_must_not_cost_more_than_wrong_ones(right: float, count: int) -> None:
    found = said(task="classes", right=right, wrong=1.0)
    assert found == ["the loss is lower for wrong answers than for right ones"] * count


@pytest.mark.parametrize(("others", "count"), [(0.98, 1), (0.995, 0), (1.5, 0)])
def test_the_target_must_not_have_the_highest_loss(others: float, count: int) -> None:
    found = said(task="values", right=1.0, x=[0.0, 1.0, 2.0], y=[others, 1.0, others])
    assert found == ["the loss is highest where the prediction is right"] * count


@pytest.mark.parametrize(("mirrored", "count"), [(0.005, 1), (0.0051, 0), (None, 0)])
def test_the_loss_must_not_be_lowest_at_minus_the_target(mirrored: float | None, count: int) -> None:
    found = said(task="values", x=[0.0, 1.0], y=[1.0, 0.5], mirrored=mirrored)
    assert found == ["the loss is lowest where the prediction is the negative of the target"] * count


@pytest.mark.parametrize(
    ("far", "count"),
    [([-3.0, -30.0], 1), ([-3.0, -19.0], 0), ([-10.0, -50.0], 0), ([-10.0, -51.0], 1), ([1.0, -30.0], 0)],
)
def test_a_loss_that_keeps_falling_far_from_the_target_has_no_bound(far: list[float], count: int) -> None:
    assert len(said(task="values", far=far)) == count


@pytest.mark.parametrize(
    ("slope", "coarse", "autograd", "count"),
    [
        (1.0, 1.19, -1.0, 1),
        (1.0, 1.21, -1.0, 0),  # a kink
        (1.0, 1.0, 1.0, 0),  # the same direction
        (0.01, 0.01, -1.0, 0),  # flat
        (0.011, 0.011, -1.0, 1),
    ],
)
def test_the_gradient_must_point_where_the_loss_rises(
    slope: float, coarse: float, autograd: float, count: int
) -> None:
    found = said(task="values", slope=slope, coarse_slope=coarse, autograd_slope=autograd)
    assert found == ["the gradient of the loss points the wrong way: following it raises the loss"] * count


def test_the_thresholds_of_bound_and_kink_can_be_set() -> None:
    run = FakeRun().experiment("loss-prefers-wrong", task="values", start=1.0, right=0.5, far=[-10.0, -50.0])
    assert findings(LossPrefersWrong(steeper=4.0), run)
    kink = {"slope": 1.0, "coarse_slope": 1.3, "autograd_slope": -1.0}
    bent = FakeRun().experiment("loss-prefers-wrong", task="values", start=1.0, right=0.5, **kink)
    assert findings(LossPrefersWrong(agree=0.5), bent)
