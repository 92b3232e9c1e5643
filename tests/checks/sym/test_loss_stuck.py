from __future__ import annotations

import math
from collections.abc import Sequence

from fake_run import LOSS, LOSS_CALL, FakeRun, findings

from clew.checks.sym.loss_stuck import LossStuck
from clew.records.finding import Severity

CHECK = LossStuck()
CHANCE = math.log(4)


def run(losses: Sequence[float], kind: str = "cross_entropy") -> FakeRun:
    made = FakeRun().signal("loss", losses, LOSS)
    return made.fact("loss", kind=kind, file="train.py", line=29, input_shape=[16, 4])


def course(start: float, end: float, steps: int = 100) -> list[float]:
    return [start] * (steps // 2) + [end] * (steps - steps // 2)


def test_a_loss_that_stays_at_chance_is_found_where_backward_is_called() -> None:
    (found,) = findings(CHECK, run(course(CHANCE, CHANCE)))
    assert (found.severity, found.site) == (Severity.WARNING, LOSS)
    assert CHECK.symptom


def test_ninety_nine_losses_give_no_verdict() -> None:
    short = run(course(CHANCE, CHANCE, 99))
    assert not findings(CHECK, short)
    assert CHECK.unjudged(short.view()) == "needs 100 steps, has 99"


def test_progress_is_not_stuck() -> None:
    assert findings(CHECK, run(course(CHANCE, 0.995 * CHANCE)))
    assert not findings(CHECK, run(course(CHANCE, 0.94 * CHANCE)))


def test_standing_still_better_than_chance_or_far_above_it_is_something_else() -> None:
    assert not findings(CHECK, run(course(0.89 * CHANCE, 0.89 * CHANCE)))
    assert not findings(CHECK, run(course(1.6 * CHANCE, 1.6 * CHANCE)))


def test_the_chance_of_a_regression_is_the_variance_of_its_targets() -> None:
    regression = run(course(4.0, 4.0), kind="mse_loss")
    regression.signal("target.std", [2.0] * 5, LOSS_CALL).signal("target.mean", [0.0] * 5, LOSS_CALL)
    assert findings(CHECK, regression)
    wide = run(course(4.0, 4.0), kind="mse_loss")
    wide.signal("target.std", [3.0] * 5, LOSS_CALL).signal("target.mean", [0.0] * 5, LOSS_CALL)
    assert not findings(CHECK, wide)


def test_a_loss_without_a_known_chance_level_is_not_judged() -> None:
    assert not findings(CHECK, run(course(1.0, 1.0), kind="triplet_margin_loss"))
