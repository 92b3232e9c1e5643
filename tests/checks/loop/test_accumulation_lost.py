from __future__ import annotations

from fake_run import STEP, FakeRun, findings

from clew.checks.loop.accumulation_lost import AccumulationLost
from clew.records.finding import Severity

CHECK = AccumulationLost()


def lost(*values: float, norm: float = 1.0) -> FakeRun:
    return FakeRun().signal("grad.lost", values, STEP).signal("grad.norm", [norm] * len(values), STEP)


def test_backwards_lost_in_step_after_step_are_a_warning() -> None:
    (found,) = findings(CHECK, lost(0, 3, 3, 3, 3, 3))
    assert (found.severity, found.site, found.step) == (Severity.WARNING, STEP, 1)
    assert found.message.startswith("3 of 4 backward passes are wasted")


def test_one_sample_too_few_gives_no_verdict() -> None:
    run = lost(0, 3, 3, 3, 3)
    assert not findings(CHECK, run)
    assert CHECK.unjudged(run.view()) == "needs 6 sampled steps, has 5"


def test_four_of_five_steps_must_lose_one() -> None:
    assert findings(CHECK, lost(0, *[1] * 8, 0, 0))
    assert not findings(CHECK, lost(0, *[1] * 7, 0, 0, 0))


def test_steps_without_any_gradient_are_another_fault() -> None:
    assert not findings(CHECK, lost(0, 1, 1, 1, 1, 1, norm=0.0))
