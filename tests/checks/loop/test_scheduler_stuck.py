from __future__ import annotations

from typing import Any

from fake_run import STEP, FakeRun, findings

from clew.checks.loop.scheduler_stuck import SchedulerStuck
from clew.records.finding import Severity

CHECK = SchedulerStuck()


def rates(*values: float, **scheduler: Any) -> FakeRun:
    run = FakeRun().signal("lr", values, STEP)
    if scheduler:
        kind = {"class": scheduler.pop("kind", "StepLR")}
        usual = {"index": 0, "file": "train.py", "line": 8, "steps": 3, "optimizer": 0}
        run.fact("scheduler", 3, **{**usual, **scheduler}, **kind)
    return run


def test_a_rate_below_a_thousandth_for_half_of_the_run_is_a_warning() -> None:
    (found,) = findings(CHECK, rates(*[0.1] * 20, *[0.99e-4] * 20))
    assert (found.severity, found.site, found.step) == (Severity.WARNING, STEP, 0)
    assert "by step 20 and stays there: 20 of 40 steps" in found.message


def test_a_thousandth_itself_or_less_than_half_is_a_usual_schedule() -> None:
    assert not findings(CHECK, rates(*[0.1] * 20, *[1e-4] * 20))
    assert not findings(CHECK, rates(*[0.1] * 31, *[0.99e-4] * 30))


def test_a_fifth_of_the_run_at_zero_is_enough() -> None:
    assert findings(CHECK, rates(*[0.1] * 80, *[0.0] * 20))
    assert not findings(CHECK, rates(*[0.1] * 81, *[0.0] * 19))


def test_nineteen_steps_are_no_verdict() -> None:
    run = rates(*[0.1] * 9, *[0.0] * 10)
    assert not findings(CHECK, run)
    assert CHECK.unjudged(run.view()) == "needs 20 optimizer steps, has 19"


def test_a_plateau_scheduler_is_not_blamed_for_a_low_rate() -> None:
    assert not findings(CHECK, rates(*[0.1] * 20, *[1e-8] * 40, kind="ReduceLROnPlateau"))


def test_a_scheduler_of_an_optimizer_that_never_steps_is_found_where_it_was_made() -> None:
    (found,) = findings(CHECK, rates(*[0.1] * 20, optimizer=None))
    assert (found.site.file, found.site.line) == ("train.py", 8)
    assert "never steps" in found.message


def test_a_scheduler_is_only_never_stepped_once_the_run_has_ended_well() -> None:
    run = rates(*[0.1] * 20, steps=0)
    assert not findings(CHECK, run)
    run.end = {"state": "finished"}
    (found,) = findings(CHECK, run)
    assert "created but never stepped" in found.message
    assert not findings(CHECK, finished(rates(*[0.1] * 20, steps=0, inner=True)))


def finished(run: FakeRun) -> FakeRun:
    run.end = {"state": "finished"}
    return run
