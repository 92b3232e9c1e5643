from __future__ import annotations

from collections.abc import Sequence

from fake_run import LOSS, Fact, FakeRun, findings

from clew.checks.sym.overfitting import Overfitting
from clew.records.finding import Severity
from clew.records.site import Site

CHECK = Overfitting()
EVAL = Site(op="cross_entropy", file="train.py", line=40, phase="eval")


def run(evaluations: Sequence[float], end: float = 0.1) -> FakeRun:
    """An evaluation every twenty steps, and a training loss that falls to `end`."""
    steps = 20 * len(evaluations)
    half = steps // 2
    made = FakeRun().signal("loss", [0.5] * half + [end] * (steps - half), LOSS)
    return made.signal("loss", evaluations, EVAL, [20 * n + 19 for n in range(len(evaluations))])


RISING = [0.6, 0.5, 0.5, 0.5, 0.58, 0.61, 0.61, 0.61]


def test_an_evaluation_loss_that_rises_by_more_than_a_fifth_is_found() -> None:
    (found,) = findings(CHECK, run(RISING))
    assert (found.severity, found.site, found.step) == (Severity.WARNING, EVAL, 39)
    assert "rose from 0.5 (step 39) to 0.61" in found.message


def test_an_evaluation_loss_that_rises_by_just_a_fifth_is_not_found() -> None:
    assert not findings(CHECK, run([0.6, 0.5, 0.5, 0.5, 0.58, 0.6, 0.6, 0.6]))


def test_a_single_bad_evaluation_is_noise() -> None:
    assert not findings(CHECK, run([0.6, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.9]))


def test_the_training_loss_must_have_fallen_on() -> None:
    assert not findings(CHECK, run(RISING, end=0.41))
    assert findings(CHECK, run(RISING, end=0.4))


def test_five_evaluations_give_no_verdict() -> None:
    few = run([0.5, 0.5, 0.7, 0.8, 0.9])
    assert not findings(CHECK, few)
    assert CHECK.unjudged(few.view()) == "needs 6 evaluations, has 5"
    assert findings(CHECK, run([0.5, 0.5, 0.5, 0.7, 0.8, 0.9]))


def test_a_checkpoint_at_the_best_point_makes_it_advice() -> None:
    kept = run(RISING)
    kept.events.append(Fact("checkpoint-save", 40, {}))
    assert [f.severity for f in findings(CHECK, kept)] == [Severity.ADVICE]
