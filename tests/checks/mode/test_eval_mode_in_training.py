from __future__ import annotations

from fake_run import FakeRun, findings, parameter

from clew.checks.mode.eval_mode_in_training import EvalModeInTraining
from clew.records.finding import Severity
from clew.records.site import Site

CHECK = EvalModeInTraining()
ROOT = Site(module="", root="model", phase="train")


def modes(*values: float, dropout: bool = True) -> FakeRun:
    run = FakeRun().model(("drop", "Dropout"), kind="Net").signal("mode.training", values, ROOT)
    layers = [["drop", "Dropout"]] if dropout else []
    return run.fact("mode", root="model", training=False, file="train.py", line=44, mode_dependent=layers)


def test_ten_steps_in_evaluation_mode_are_found_at_the_eval_call() -> None:
    (found,) = findings(CHECK, modes(1, 1, *[0] * 10))
    assert (found.severity, found.step) == (Severity.WARNING, 2)
    assert (found.site.file, found.site.line) == ("train.py", 44)
    assert "Net has been trained in evaluation mode since step 2: Dropout does not" in found.message


def test_nine_steps_give_no_verdict() -> None:
    run = modes(*[0] * 9)
    assert not findings(CHECK, run)
    assert CHECK.unjudged(run.view()) == "needs 10 sampled training steps, has 9"


def test_a_model_back_in_training_mode_is_fine() -> None:
    assert not findings(CHECK, modes(*[0] * 10, 1))


def test_the_mode_does_not_matter_without_layers_that_depend_on_it() -> None:
    assert not findings(CHECK, modes(*[0] * 10, dropout=False))


def test_attacks_made_in_evaluation_mode_within_a_training_step_are_fine() -> None:
    steps = [step for step in range(12) for _ in range(3)]
    run = modes().signal("mode.training", [0, 0, 1] * 12, ROOT, steps)
    assert not findings(CHECK, run)


def test_a_model_that_no_optimizer_holds_is_left_alone() -> None:
    run = modes(*[0] * 10).parameters(parameter("drop", optimizer=None), root_in_optimizer=False)
    assert not findings(CHECK, run)
