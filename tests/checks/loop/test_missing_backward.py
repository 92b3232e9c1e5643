from __future__ import annotations

from fake_run import STEP, FakeRun, findings

from clew.checks.loop.missing_backward import MissingBackward
from clew.records.finding import Severity

CHECK = MissingBackward()


def stepping(pattern: str, norms: list[float], present: float = 0.0, **use: object) -> FakeRun:
    run = FakeRun().signal("grad.norm", norms, STEP).signal("grad.present", [present] * len(norms), STEP)
    run.signal("events.pattern", [0.0] * len(norms)).fact("pattern", id=0, pattern=pattern)
    if use:
        run.fact("optimizer_use", 3, stepped=True, with_grad=0, held=2, **use)
    return run


def test_steps_without_any_backward_are_an_error_at_the_step_call() -> None:
    (found,) = findings(CHECK, stepping("dzfs", [0.0] * 5))
    assert (found.severity, found.site) == (Severity.ERROR, STEP)
    assert found.message.startswith("backward() is never called: all 5 optimizer steps")


def test_four_steps_are_too_few() -> None:
    run = stepping("dzfs", [0.0] * 4)
    assert not findings(CHECK, run)
    assert CHECK.unjudged(run.view()) == "needs 5 optimizer steps, has 4"


def test_a_single_gradient_is_enough_to_be_silent() -> None:
    assert not findings(CHECK, stepping("dzfs", [0.0] * 9 + [0.1]))


def test_an_optimizer_that_moves_weights_without_gradients_is_not_reported() -> None:
    assert findings(CHECK, stepping("fs", [0.0] * 9, changed=False))
    assert not findings(CHECK, stepping("fs", [0.0] * 9, changed=True))


def test_gradients_cleared_between_backward_and_step_are_found() -> None:
    (found,) = findings(CHECK, stepping("dfbzs", [0.0] * 9, present=1.0))
    assert "between backward() and step()" in found.message


def test_zero_gradients_in_the_right_order_are_not_this_fault() -> None:
    assert not findings(CHECK, stepping("dzfbs", [0.0] * 9, present=1.0))
