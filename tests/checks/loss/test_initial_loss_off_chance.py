from __future__ import annotations

import math

import pytest
from fake_run import FakeRun, findings, parameter
from loss_calls import call_site, loss_call

from clew.checks.loss.initial_loss_off_chance import InitialLossOffChance
from clew.records.finding import Severity

CHECK = InitialLossOffChance()


def started(first: float, chance: float, kind: str = "cross_entropy", steps: int = 4) -> FakeRun:
    run = loss_call(kind).signal("loss_call.value", [first] + [chance] * (steps - 1), call_site(kind))
    run.signal("target.std", [1.0] * steps, call_site(kind))
    return run.signal("loss_call.chance", [chance] * steps, call_site(kind))


@pytest.mark.parametrize(
    ("times", "severity"), [(10.1, Severity.WARNING), (9.9, Severity.ADVICE), (4.1, Severity.ADVICE)]
)
def test_a_first_loss_many_times_chance_is_reported(times: float, severity: Severity) -> None:
    (found,) = findings(CHECK, started(times * math.log(10), math.log(10)))
    assert (found.severity, found.step, found.site) == (severity, 0, call_site("cross_entropy"))


@pytest.mark.parametrize("times", [3.9, 1.0, 0.01, math.nan])
def test_a_first_loss_near_chance_is_healthy(times: float) -> None:
    assert not findings(CHECK, started(times * math.log(10), math.log(10)))


def test_squared_errors_give_advice_only_and_far_later() -> None:
    assert findings(CHECK, started(101.0, 1.0, "mse_loss"))[0].severity is Severity.ADVICE
    assert not findings(CHECK, started(99.0, 1.0, "mse_loss"))


def test_loaded_weights_are_not_judged() -> None:
    run = started(50.0, 1.0).parameters(parameter("fc", loaded=True))
    assert not findings(CHECK, run)
    assert "loaded" in (CHECK.unjudged(run.view()) or "")


def test_a_later_loss_says_nothing_about_the_start() -> None:
    run = loss_call("cross_entropy").signal("loss_call.value", [50.0], call_site("cross_entropy"), [5])
    assert not findings(CHECK, run.signal("loss_call.chance", [1.0], call_site("cross_entropy"), [5]))


def test_three_steps_give_no_verdict() -> None:
    run = started(50.0, 1.0, steps=3)
    assert not findings(CHECK, run)
    assert CHECK.unjudged(run.view()) == "needs 4 steps, has 3"
