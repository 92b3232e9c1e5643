from __future__ import annotations

from fake_run import NOWHERE, FakeRun, findings, parameter

from clew.checks.mode.train_mode_in_evaluation import TrainModeInEvaluation
from clew.records.finding import Severity
from clew.records.site import Site

CHECK = TrainModeInEvaluation()
EVAL = Site("", phase="eval", root="model", file="train.py", line=40)


def trained(steps: int = 10, dependent: bool = True, optimizer: int | None = 0) -> FakeRun:
    run = FakeRun().model(("drop", "Dropout")).parameters(parameter("fc", optimizer=optimizer))
    run.facts[0].data["modules"][0]["mode_dependent"] = dependent
    run.fact("pattern", id=0, pattern="dzfbs").fact("pattern", id=1, pattern="(df)+dzfbs")
    return run.signal("events.pattern", [0.0] * steps)


def evaluated(run: FakeRun, steps: list[int], mode: float = 1.0, batches: float = 0.0) -> FakeRun:
    run.signal("mode.evaluation", [mode] * len(steps), EVAL, steps)
    return run.signal("evaluation.batches", [batches] * len(steps), EVAL, steps)


def test_an_evaluation_now_and_then_in_training_mode_is_a_warning_at_its_line() -> None:
    (found,) = findings(CHECK, evaluated(trained(), [4, 9]))
    assert (found.severity, found.site, found.step) == (Severity.WARNING, EVAL, 4)
    assert "2 of 2 evaluations" in found.message
    assert "Monte Carlo dropout" in found.message


def test_evaluation_mode_is_silent() -> None:
    assert not findings(CHECK, evaluated(trained(), [4, 9], mode=0.0))


def test_nine_steps_are_too_few() -> None:
    assert not findings(CHECK, evaluated(trained(steps=9), [4]))


def test_forwards_in_half_of_the_steps_are_part_of_training() -> None:
    assert findings(CHECK, evaluated(trained(), [2, 4, 6, 8]))
    assert not findings(CHECK, evaluated(trained(), [1, 3, 5, 7, 9]))


def test_a_loss_or_a_loader_tells_a_frequent_evaluation() -> None:
    often = [1, 3, 5, 7, 9]
    loss = Site(op="cross_entropy", phase="eval")
    assert findings(CHECK, evaluated(trained(), often).signal("loss", [1.0] * 3, loss, [1, 3, 5]))
    assert findings(CHECK, evaluated(trained(), often, batches=2.0))


def test_samples_of_a_generator_of_which_nothing_is_measured_are_advice() -> None:
    def gan() -> FakeRun:
        two = trained().fact("optimizer", index=0).fact("optimizer", index=1)
        return evaluated(two, [4, 9])

    (found,) = findings(CHECK, gan())
    assert found.severity is Severity.ADVICE
    loss = Site(op="cross_entropy", phase="eval")
    (found,) = findings(CHECK, gan().signal("loss", [1.0] * 2, loss, [4, 9]))
    assert found.severity is Severity.WARNING


def test_a_trial_forward_before_training_is_silent() -> None:
    assert not findings(CHECK, evaluated(trained(), [0]))


def test_without_layers_that_depend_on_the_mode_or_an_optimizer_it_does_not_matter() -> None:
    assert not findings(CHECK, evaluated(trained(dependent=False), [4]))
    assert not findings(CHECK, evaluated(trained(optimizer=None), [4]))


def test_evaluation_with_gradients_is_found_by_its_order_of_events() -> None:
    run = trained().signal("mode.training", [1.0] * 10, Site("", root="model", phase="train"))
    assert not findings(CHECK, run)
    run.signal("events.pattern", [1.0, 1.0], NOWHERE, [10, 11])
    (found,) = findings(CHECK, run)
    assert "with gradients (2 times)" in found.message
