from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from fake_run import LOSS, STEP, FakeRun, findings, parameter, weight

from clew.checks.opt.learning_rate_too_low import LearningRateTooLow
from clew.checks.runner import ask
from clew.records.finding import Severity

CHECK = LearningRateTooLow()


def run(
    losses: Sequence[float], ratio: float = 1e-5, rate: Sequence[float] = (1e-5,) * 60, gradient: float = 0.1
) -> FakeRun:
    made = FakeRun().model(("a", "Linear"), ("b", "Linear"))
    made.signal("loss", losses, LOSS).signal("lr", rate, STEP)
    for path in ("a", "b"):
        made.signal("update.ratio", [ratio] * 12, weight(path))
        made.signal("gradient.norm", [gradient] * 12, weight(path))
        made.signal("weight.norm", [1.0] * 12, weight(path))
    return made


def course(fall: float, steps: int = 60) -> list[float]:
    """A loss whose last third is this share of its first."""
    third = steps // 3
    return [1.0] * third + [(1 + fall) / 2] * (steps - 2 * third) + [fall] * third


def test_tiny_updates_and_a_loss_that_does_not_move_are_found_at_the_step_call() -> None:
    (found,) = findings(CHECK, run(course(0.99)))
    assert (found.severity, found.site) == (Severity.WARNING, STEP)
    assert found.fix == "lr=0.001  # instead of 1e-05"


def test_updates_just_under_the_limit_are_found_and_those_at_it_are_not() -> None:
    assert findings(CHECK, run(course(0.99), ratio=2.9e-4))
    assert not findings(CHECK, run(course(0.99), ratio=3e-4))


def test_a_loss_that_falls_by_more_than_a_tenth_or_rises_is_left_alone() -> None:
    assert findings(CHECK, run(course(0.91)))
    assert not findings(CHECK, run(course(0.89)))
    assert not findings(CHECK, run(course(1.11)))


def test_one_loss_too_few_gives_no_verdict() -> None:
    short = run(course(0.99, 49))
    assert not findings(CHECK, short)
    assert CHECK.unjudged(short.view()) == "needs 50 steps, has 49"


def test_a_gradient_that_is_itself_too_small_is_to_blame() -> None:
    assert not findings(CHECK, run(course(0.99), gradient=9e-4))


def test_a_warm_up_that_has_not_ended_is_not_judged() -> None:
    rising = run(course(0.99), rate=list(np.linspace(1e-7, 1e-5, 60)))
    assert not findings(CHECK, rising)
    assert CHECK.unjudged(rising.view()) == "the learning rate is still warming up"


def test_the_end_of_a_schedule_does_not_count() -> None:
    decayed = run(course(0.99), ratio=1e-3)
    for path in ("a", "b"):
        decayed.signal("update.ratio", [1e-6] * 40, weight(path), range(12, 52))
    assert findings(CHECK, decayed), "most of the run at next to nothing"
    half = run(course(0.99), ratio=1e-3)
    for path in ("a", "b"):
        half.signal("update.ratio", [1e-6] * 12, weight(path), range(12, 24))
    assert not findings(CHECK, half)


def test_loaded_models_and_several_losses_are_not_judged() -> None:
    loaded = run(course(0.99)).parameters(parameter("a", loaded=True))
    assert not findings(CHECK, loaded)
    two = run(course(0.99)).signal("loss", course(0.99))
    assert not findings(CHECK, two)


def compared(gains: Sequence[float], factor: float = 1e4, higher: float = 1.0, start: float = 2.0) -> FakeRun:
    """The experiment: by how much the loss falls at a rate of 0.01, and at this many times that."""
    rows = [
        {"factor": 1.0, "rate": 0.01, "gains": list(gains)},
        {"factor": factor, "rate": 0.01 * factor, "gains": [higher] * len(gains)},
    ]
    return FakeRun().experiment("learning-rate-too-low", start=start, steps=40, rate=0.01, rows=rows)


@pytest.mark.parametrize(
    ("run", "count"),
    [
        (compared([0.005] * 3), 1),
        (compared([0.0051] * 3), 0),
        (compared([0.005, 0.005, 0.01]), 0),  # one shuffle disagrees
        (compared([0.005] * 2), 0),  # too few shuffles
        (compared([0.005] * 3, factor=100.0), 1),
        (compared([0.005] * 3, factor=10.0), 0),  # may be patience
        (compared([0.0] * 3, higher=0.19), 0),  # the higher rate hardly helps
    ],
)
def test_a_much_higher_rate_that_learns_much_more_shows_that_this_one_is_too_low(
    run: FakeRun, count: int
) -> None:
    found = findings(CHECK, run)
    assert len(found) == count
    assert all("over 3 shuffles: " in f.evidence[-1].text for f in found)


@pytest.mark.parametrize(("start", "found"), [(4000.0, 1), (3999.0, 0), (-0.02, 0)])
def test_a_loss_without_a_lowest_value_does_not_tell_a_low_rate(start: float, found: int) -> None:
    assert len(findings(CHECK, compared([0.5] * 3, higher=4000.0, start=start))) == found


def test_why_the_experiment_is_no_proof_is_said() -> None:
    bottomless = compared([0.5] * 3, higher=4000.0, start=3999.0)
    reason = "the loss falls below zero, so its lowest value is unknown"
    assert ask(CHECK, bottomless.view()) == ([], reason)
    loaded = compared([0.005] * 3).parameters(parameter("a", loaded=True))
    assert ask(CHECK, loaded.view()) == ([], "the weights were loaded: a low rate may be intended")
