from __future__ import annotations

from fake_run import LOSS, FakeRun, findings, parameter

from clew.checks.sym.underfitting import Underfitting
from clew.records.finding import Severity
from clew.records.site import Site

CHECK = Underfitting()
EVAL = Site(op="mse_loss", file="train.py", line=40, phase="eval")


def run(end: float = 0.6, middle: float | None = None, steps: int = 100) -> FakeRun:
    """A loss of one that falls at a quarter of the run, and stays."""
    quarter = steps // 4
    level = end if middle is None else middle
    losses = [1.0] * quarter + [level] * (steps - 2 * quarter) + [end] * quarter
    return FakeRun().signal("loss", losses, LOSS)


def test_a_loss_that_stops_halfway_is_advice() -> None:
    (found,) = findings(CHECK, run())
    assert (found.severity, found.site) == (Severity.ADVICE, LOSS)
    assert CHECK.symptom


def test_a_loss_that_fell_to_half_or_never_fell_is_not_found() -> None:
    assert not findings(CHECK, run(end=0.5))
    assert not findings(CHECK, run(end=0.95))


def test_a_loss_that_still_falls_is_not_found() -> None:
    assert findings(CHECK, run(end=0.575, middle=0.6))
    assert not findings(CHECK, run(end=0.56, middle=0.6))


def test_ninety_nine_losses_give_no_verdict() -> None:
    short = run(steps=99)
    assert not findings(CHECK, short)
    assert CHECK.unjudged(short.view()) == "needs 100 steps, has 99"


def test_a_worse_evaluation_is_overfitting_and_a_loaded_model_has_no_start() -> None:
    assert findings(CHECK, run().signal("loss", [0.7], EVAL, [99]))
    assert not findings(CHECK, run().signal("loss", [0.73], EVAL, [99]))
    assert not findings(CHECK, run().parameters(parameter("a", loaded=True)))
