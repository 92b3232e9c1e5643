from __future__ import annotations

from typing import Any

from fake_run import LOSS, FakeRun, findings

from clew.checks.loop.missing_optimizer_step import MissingOptimizerStep
from clew.records.finding import Severity

CHECK = MissingOptimizerStep()


def made(**more: Any) -> FakeRun:
    usual = {"index": None, "file": "train.py", "line": 12, "stepped": False, "held": 4, "with_grad": 4}
    data = {**usual, "shared": False, "changed": False, "backwards": 20, "unscaled": 0, **more}
    return FakeRun().signal("loss", [1.0] * 20, LOSS).fact("optimizer_use", 3, **data, **{"class": "Adam"})


def test_an_optimizer_that_never_steps_is_an_error_at_the_backward_call() -> None:
    (found,) = findings(CHECK, made())
    assert (found.severity, found.site) == (Severity.ERROR, LOSS)
    assert found.message.startswith("Adam never steps: after 20 backward passes")


def test_nineteen_backwards_are_too_few() -> None:
    assert not findings(CHECK, made(backwards=19))


def test_what_is_updated_otherwise_or_has_no_gradient_is_not_missed() -> None:
    for reason in ({"changed": True}, {"shared": True}, {"unscaled": 3}, {"with_grad": 0}, {"stepped": True}):
        assert not findings(CHECK, made(**reason)), reason


def test_one_of_two_optimizers_gets_until_the_end_of_the_run_to_begin() -> None:
    run = made(backwards=199).fact("optimizer_use", 3, index=0, stepped=True, line=13)
    assert not findings(CHECK, run)
    run.end = {"state": "finished"}
    (found,) = findings(CHECK, run)
    assert (found.severity, found.site.line) == (Severity.WARNING, 12)


def test_the_newest_fact_of_an_optimizer_counts() -> None:
    later = {"file": "train.py", "line": 12, "held": 4, "class": "Adam"}
    assert not findings(CHECK, made().fact("optimizer_use", 9, index=0, stepped=True, **later))
