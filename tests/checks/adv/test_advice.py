"""Advice based on a whole run."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from fake_run import LOSS, STEP, Fact, FakeRun, findings, weight

from clew.checks.adv.hyperparameters_off import HyperparametersOff
from clew.checks.adv.still_improving import StillImproving
from clew.checks.adv.too_few_examples import TooFewExamples
from clew.records.finding import Severity
from clew.records.site import Site

IMPROVING, FEW, SETTINGS = StillImproving(), TooFewExamples(), HyperparametersOff()
EVAL = Site(op="cross_entropy", file="train.py", line=40, phase="eval")


def ended(last: float, rate: float = 0.1, steps: int = 50) -> FakeRun:
    """A loss that stood at one until its last fifth."""
    fifth = steps // 5
    made = FakeRun().signal("loss", [1.0] * (steps - fifth) + [last] * fifth, LOSS)
    made.signal("lr", [0.1] * (steps - 1) + [rate], STEP)
    made.end = {"state": "finished"}
    return made


def test_a_run_that_ends_with_a_falling_loss_gets_advice() -> None:
    assert [f.severity for f in findings(IMPROVING, ended(0.9))] == [Severity.ADVICE]
    assert not findings(IMPROVING, ended(0.91))


def test_a_loss_that_is_next_to_nothing_has_fallen_far_enough() -> None:
    assert findings(IMPROVING, ended(0.02))
    assert not findings(IMPROVING, ended(0.019))


def test_a_run_that_is_still_running_or_was_interrupted_gets_no_advice() -> None:
    going = ended(0.8)
    going.end = None
    assert not findings(IMPROVING, going)
    broken = ended(0.8)
    broken.events.append(Fact("interrupt", 49, {}))
    assert not findings(IMPROVING, broken)


def test_neither_a_finished_schedule_nor_a_worsening_evaluation_asks_for_more() -> None:
    assert not findings(IMPROVING, ended(0.8, rate=0.009))
    assert not findings(IMPROVING, ended(0.8).signal("loss", [0.8, 0.7, 0.75], EVAL, [10, 20, 30]))


def test_forty_nine_losses_give_no_verdict_on_the_end() -> None:
    short = ended(0.8, steps=49)
    assert not findings(IMPROVING, short)
    assert IMPROVING.unjudged(short.view()) == "needs 50 steps, has 49"


def gap(evaluations: Sequence[float], samples: int = 14) -> FakeRun:
    """144 parameters, a training loss that falls from 1 to 0.2, and evaluations every twenty steps."""
    made = FakeRun().model(("a", "Linear"), ("b", "Linear")).signal("loss", [1.0] * 40 + [0.2] * 40, LOSS)
    made.signal("loss", evaluations, EVAL, [20 * n + 19 for n in range(len(evaluations))])
    return made.fact("loader", index=0, length=samples)


def test_few_samples_and_a_growing_gap_are_advice() -> None:
    assert [f.severity for f in findings(FEW, gap([1.0, 1.0, 1.0, 1.0]))] == [Severity.ADVICE]


def test_one_more_sample_or_no_gap_is_enough() -> None:
    assert not findings(FEW, gap([1.0, 1.0, 1.0, 1.0], samples=15))
    assert not findings(FEW, gap([1.0, 1.0, 0.29, 0.29]))


def test_three_evaluations_give_no_verdict_on_the_gap() -> None:
    short = gap([1.0, 1.0, 1.0])
    assert not findings(FEW, short)
    assert FEW.unjudged(short.view()) == "needs 4 evaluations, has 3"


def settings(ratio: float, *, dropout: bool) -> FakeRun:
    made = FakeRun().model(("a", "Linear"), ("b", "Linear"))
    made.signal("loss", [1.0] * 10, LOSS).signal("lr", [0.01] * 20, STEP)
    for path in ("a", "b"):
        made.signal("update.ratio", [ratio] * 20, weight(path))
        made.signal("gradient.norm", [0.1] * 20, weight(path)).signal("weight.norm", [1.0] * 20, weight(path))
    row = {"path": "drop", "p": 0.95, "module": True, "norm": None, "loss": False}
    return made.fact("structure", root="model", dropouts=[row] if dropout else [])


def test_two_settings_that_are_off_ask_for_a_sweep_and_one_does_not() -> None:
    (found,) = findings(SETTINGS, settings(0.5, dropout=True))
    assert found.severity is Severity.ADVICE
    assert "update-ratio-off, dropout-misplaced" in found.message
    assert not findings(SETTINGS, settings(1e-3, dropout=True))
    assert not findings(SETTINGS, settings(0.5, dropout=False))


def curves(*held_out: list[float], trained: float = 0.1, start: float = 2.3) -> FakeRun:
    """Losses by the number of training samples, one row for each split."""
    rows = [{"held_out": h, "trained": [0.0, 0.0, trained], "start": start} for h in held_out]
    return FakeRun().experiment("too-few-examples", sizes=[10, 20, 40], parameters=900, curves=rows)


@pytest.mark.parametrize(
    ("run", "count"),
    [
        (curves([2.2, 1.5, 1.2], [2.1, 1.4, 1.1]), 1),
        (curves([2.2, 1.25, 1.2], [2.1, 1.2, 1.1]), 0),  # hardly falls any more
        (curves([2.2, 1.5, 0.3], [2.1, 1.4, 0.3]), 0),  # has arrived
        (curves([2.2, 1.5, 1.2], [2.1, 1.4, 1.1], trained=1.0), 0),  # no gap
        (curves([2.2, 2.5, 1.2], [2.1, 0.9, 1.4]), 0),  # the splits differ more than the sizes
        (curves([2.2, 1.5, 1.2]), 0),  # one split tells nothing
    ],
)
def test_a_loss_must_still_fall_clearly_with_more_samples(run: FakeRun, count: int) -> None:
    assert len(findings(FEW, run)) == count


def swept(rate: float, fall: float = 1.0, warms_up: bool = False) -> FakeRun:
    """A range test in which the loss falls from a rate of 0.01 to 0.1, and diverges above 1."""
    return FakeRun().experiment(
        "hyperparameters-off", rate=rate, low=0.01, best=0.1, diverges=1.0, start=2.0, fall=fall, noise=0.1,
        warms_up=warms_up,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("run", "count"),
    [
        (swept(1.9e-4), 1),
        (swept(2.1e-4), 0),  # a cautious rate
        (swept(1.1), 1),
        (swept(1.0), 0),
        (swept(1.1, warms_up=True), 0),  # a schedule leads up to it
        (swept(1.9e-4, fall=0.3), 0),  # no larger than the noise
    ],
)
def test_a_rate_far_outside_the_range_in_which_the_loss_falls_gets_advice(run: FakeRun, count: int) -> None:
    assert len(findings(SETTINGS, run)) == count
