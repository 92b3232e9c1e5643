from __future__ import annotations

from typing import Any

from fake_run import STEP, FakeRun, findings

from clew.checks.loop.scheduler_before_optimizer import SchedulerBeforeOptimizer
from clew.records.finding import Severity

CHECK = SchedulerBeforeOptimizer()


def scheduled(**more: Any) -> FakeRun:
    usual = {"index": 0, "step_file": "train.py", "step_line": 20, "steps": 2, "early": 1, "optimizer": 0}
    kind = {"class": more.pop("kind", "StepLR")}
    return FakeRun().signal("lr", [0.1] * 5, STEP).fact("scheduler", 3, **{**usual, **more}, **kind)


def test_a_scheduler_that_steps_first_is_a_warning_at_its_step_call() -> None:
    (found,) = findings(CHECK, scheduled())
    assert (found.severity, found.site.line) == (Severity.WARNING, 20)
    assert found.message.startswith("StepLR is stepped before the optimizer")


def test_the_right_order_and_a_fast_forward_are_silent() -> None:
    assert not findings(CHECK, scheduled(early=0))
    assert not findings(CHECK, scheduled(early=7, steps=12))


def test_a_single_step_before_training_is_no_verdict() -> None:
    assert not findings(CHECK, scheduled(steps=1))


def test_inner_schedulers_plateaus_and_skipped_first_steps_are_silent() -> None:
    assert not findings(CHECK, scheduled(inner=True))
    assert not findings(CHECK, scheduled(kind="ReduceLROnPlateau"))
    assert not findings(CHECK, scheduled().fact("optimizer_use", 3, unscaled=4))
