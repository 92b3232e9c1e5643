from __future__ import annotations

import math

import pytest
from data_runs import INPUT, LOOP, LOSS_CALL, fed, labels, loader
from fake_run import LOSS, FakeRun, findings, weight

from clew.checks.data.labels_misaligned import LabelsMisaligned
from clew.records.finding import Severity

CHECK = LabelsMisaligned()
NAN = float("nan")
CHANCE = math.log(4)


def run(relabelled: list[float], distinct: float = 1.0) -> FakeRun:
    made = fed(loader(FakeRun().model(("0", "Linear")))).signal("sample.relabelled", relabelled, INPUT)
    made.signal("sample.distinct", [distinct] * len(relabelled), INPUT)
    return made.signal("label.classes", [4.0] * len(relabelled), LOSS_CALL)


def test_samples_that_come_again_with_other_labels_are_an_error() -> None:
    (found,) = findings(CHECK, run([NAN, 0.3, 0.3, 0.3]))
    assert (found.severity, found.step) == (Severity.ERROR, 1)
    assert (found.site.file, found.site.line) == LOOP
    assert not findings(CHECK, run([NAN, 0.29, 0.29, 0.29]))
    assert not findings(CHECK, run([NAN, NAN, 0.5, 0.5]))


def stuck(
    loss: float = CHANCE,
    separation: float = 1.0,
    deviations: float = 0.0,
    steps: int = 60,
    update: float = 1e-3,
) -> FakeRun:
    made = labels(run([NAN] * 8), [[c, 100, 25] for c in range(4)])
    made.fact("label_signal", separation=separation, deviations=deviations, samples=512.0, neighbours=0.25)
    return made.signal("loss", [loss] * steps, LOSS).signal("update.ratio", [update] * 8, weight("0"))


def test_a_loss_at_chance_with_labels_that_fit_nothing_is_a_warning_at_the_loss() -> None:
    (found,) = findings(CHECK, stuck())
    assert (found.severity, found.site) == (Severity.WARNING, LOSS_CALL)
    assert "no-signal" in found.fix


def test_a_loss_that_is_falling_or_diverging_is_not_at_chance() -> None:
    assert findings(CHECK, stuck(loss=CHANCE * 0.951))
    assert not findings(CHECK, stuck(loss=CHANCE * 0.949))
    assert not findings(CHECK, stuck(loss=CHANCE * 1.051))


def test_labels_that_have_to_do_with_the_inputs_are_not_the_reason() -> None:
    assert not findings(CHECK, stuck(separation=3.0))
    assert not findings(CHECK, stuck(deviations=3.0))


def test_an_optimizer_that_stands_still_is_another_fault() -> None:
    assert not findings(CHECK, stuck(update=9e-6))


def test_fifty_nine_steps_are_too_few() -> None:
    assert not findings(CHECK, stuck(steps=59))


def test_without_a_second_look_at_any_sample_there_is_no_verdict() -> None:
    assert CHECK.unjudged(run([NAN] * 8).view()) == "no sample was seen twice"


def test_samples_that_look_alike_may_have_different_labels() -> None:
    assert findings(CHECK, run([0.5] * 4, distinct=0.99))
    assert not findings(CHECK, run([0.5] * 4, distinct=0.98))


def paired(other: int, matched: int = 100, consistent: float = 0.5, **more: object) -> FakeRun:
    """The experiment: samples that were found again in the dataset, and those with another label."""
    side = {"matched": matched, "other": other, "consistent": consistent}
    return FakeRun().experiment("labels-misaligned", sides={"training": side}, line=["train.py", 12], **more)


@pytest.mark.parametrize(
    ("made", "count"),
    [
        (paired(5), 1),
        (paired(4), 0),  # a data race makes so few
        (paired(19, matched=19), 0),  # too few were found
        (paired(50, consistent=0.95), 0),  # only renamed
    ],
)
def test_inputs_with_other_labels_than_in_the_dataset_are_an_error(made: FakeRun, count: int) -> None:
    found = findings(CHECK, made)
    assert [(f.severity, f.confidence) for f in found] == [(Severity.ERROR, "certain")] * count


@pytest.mark.parametrize(("there", "here", "count"), [(6.0, 1.9, 1), (5.9, 1.9, 0), (6.0, 2.0, 0)])
def test_a_signal_that_is_lost_on_the_way_to_training_is_a_warning(
    there: float, here: float, count: int
) -> None:
    made = paired(0, learners={"dataset": there, "training": here})
    assert [f.severity for f in findings(CHECK, made)] == [Severity.WARNING] * count
