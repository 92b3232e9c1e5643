from __future__ import annotations

import pytest
from fake_run import FakeRun, findings

from clew.checks.met.metric_implausible import MetricImplausible
from clew.records.finding import Severity
from clew.records.site import Site

CHECK = MetricImplausible()
LOG = Site(op="log", file="train.py", line=40)
LOSS = Site(op="backward", file="train.py", line=30, phase="train")
FALLING = [2.0 - 0.1 * n for n in range(10)]


def logged(name: str, values: list[float]) -> FakeRun:
    return FakeRun().signal("loss", FALLING, LOSS).signal(f"metric.{name}", values, LOG)


@pytest.mark.parametrize(
    ("name", "values"), [("acc", [50.0, 101.0]), ("f1", [-0.1]), ("rmse", [-1.0]), ("val_iou", [250.0])]
)
def test_a_value_that_its_name_rules_out_is_reported_where_it_is_logged(
    name: str, values: list[float]
) -> None:
    (found,) = findings(CHECK, logged(name, values))
    assert (found.severity, found.site) == (Severity.WARNING, LOG)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("acc", [0.0, 100.0]),
        ("acc", [1.0]),
        ("accumulated", [500.0]),
        ("rmse", [0.0, 1e6]),
        ("reward", [-5.0]),
    ],
)
def test_a_possible_value_is_left_alone(name: str, values: list[float]) -> None:
    assert not findings(CHECK, logged(name, values))


def sums(values: list[float]) -> list[float]:
    return [sum(values[: n + 1]) for n in range(len(values))]


def test_a_loss_that_is_a_sum_never_reset_is_reported() -> None:
    assert "never reset" in findings(CHECK, logged("train_loss", sums(FALLING)))[0].message


@pytest.mark.parametrize("values", [FALLING, sums(FALLING)[:9], [0.01 * n for n in range(10)]])
def test_a_loss_that_falls_or_creeps_up_is_left_alone(values: list[float]) -> None:
    assert not findings(CHECK, logged("train_loss", values))


def test_without_a_metric_there_is_no_verdict() -> None:
    run = FakeRun().signal("loss", [1.0], LOSS)
    assert "no metric" in (CHECK.unjudged(run.view()) or "")


def test_a_share_that_creeps_past_one_without_falling_is_a_sum() -> None:
    (found,) = findings(CHECK, logged("accuracy", [0.03 * n for n in range(40)]))
    assert "it only grows" in found.message


@pytest.mark.parametrize(
    "values",
    [
        [0.03 * n for n in range(39)],  # too few to tell
        [0.02 * n for n in range(40)],  # below 1
        [0.5 * n for n in range(40)],  # leaps, as percent do
        [0.03 * n for n in range(39)] + [1.0],  # falls once
    ],
)
def test_a_share_that_may_be_a_percentage_is_left_alone(values: list[float]) -> None:
    assert not findings(CHECK, logged("accuracy", values))
