from __future__ import annotations

import math

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
