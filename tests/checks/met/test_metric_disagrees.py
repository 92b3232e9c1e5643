from __future__ import annotations

from collections.abc import Callable

import pytest
from fake_run import FakeRun, findings
from loss_calls import call_site, loss_call

from clew.checks.evidence.metric_names import is_accuracy, is_held_out, is_share
from clew.checks.met.metric_disagrees import MetricDisagrees
from clew.records.finding import Severity
from clew.records.site import Site

CHECK = MetricDisagrees()
LOG = Site(op="log", file="train.py", line=40)


def logged(values: list[float], right: float = 0.9, name: str = "train_acc", samples: int = 10) -> FakeRun:
    run = loss_call("cross_entropy")
    run.signal("prediction.accuracy", [right] * samples, call_site("cross_entropy"))
    run.signal("loss_call.value", [0.1] * samples, call_site("cross_entropy"))
    return run.signal(f"metric.{name}", values, LOG, range(10, 10 + len(values)))


def test_an_accuracy_far_below_the_share_of_right_answers_is_wrong_at_the_call_that_logs_it() -> None:
    (found,) = findings(CHECK, logged([0.1, 0.2, 0.59]))
    assert (found.severity, found.site) == (Severity.WARNING, LOG)
    assert any("at least 86%" in e.text for e in found.evidence)


def test_percent_are_understood() -> None:
    assert findings(CHECK, logged([10.0, 20.0, 30.0]))
    assert not findings(CHECK, logged([85.0, 88.0, 90.0]))


@pytest.mark.parametrize(
    "run",
    [
        logged([0.1, 0.2, 0.61]),
        logged([0.1, 0.1, 0.1], right=0.59),
        logged([0.1, 0.1, 0.1], name="val_acc"),
        logged([0.1, 0.1, 0.1], name="speed"),
        logged([0.1, 0.1]),
        logged([0.1, 0.1, 0.1], samples=9),
    ],
    ids=["near enough", "not learned", "held out", "no accuracy", "too few logged", "too few batches"],
)
def test_what_can_not_be_compared_or_agrees_is_left_alone(run: FakeRun) -> None:
    assert not findings(CHECK, run)


def test_without_an_accuracy_there_is_no_verdict() -> None:
    assert "no accuracy" in (CHECK.unjudged(logged([0.1] * 3, name="speed").view()) or "")


@pytest.mark.parametrize(
    ("asks", "yes", "no"),
    [
        (is_accuracy, "trainAcc", "accumulated"),
        (is_accuracy, "epoch/accuracy", "acc_loss"),
        (is_held_out, "val/acc", "value_acc"),
        (is_share, "macro_f1", "dice_loss"),
    ],
)
def test_names_are_read_word_by_word(asks: Callable[[str], bool], yes: str, no: str) -> None:
    assert asks(yes)
    assert not asks(no)
