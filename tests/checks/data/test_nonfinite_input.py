from __future__ import annotations

from data_runs import INPUT, LOOP, fed, loader
from fake_run import LOSS, FakeRun, findings

from clew.checks.data.nonfinite_input import NonfiniteInput
from clew.records.finding import Severity
from clew.records.site import Site

CHECK = NonfiniteInput()
NAN = float("nan")


def run(bad: list[float], losses: list[float], site: Site = INPUT) -> FakeRun:
    made = fed(loader(FakeRun().model(("0", "Linear"))))
    return made.signal("input.nonfinite", bad, site).signal("loss", losses, LOSS)


def test_a_nan_in_the_batch_that_breaks_the_loss_is_found_at_the_loaders_loop() -> None:
    (found,) = findings(CHECK, run([0, 0, 1], [1.0, 1.0, NAN]))
    assert (found.severity, found.step) == (Severity.ERROR, 2)
    assert (found.site.file, found.site.line) == LOOP
    assert "1 non-finite value at step 2" in found.message


def test_a_finite_batch_does_not_explain_a_broken_loss() -> None:
    assert not findings(CHECK, run([0, 0, 0], [1.0, 1.0, NAN]))


def test_missing_values_that_the_model_fills_are_left_alone() -> None:
    assert not findings(CHECK, run([0, 0, 1], [1.0, 1.0, 0.9]))


def test_a_batch_that_came_after_the_break_is_not_its_cause() -> None:
    assert not findings(CHECK, run([0, 0, 1], [1.0, NAN, NAN]))


def test_a_mask_with_infinities_is_no_broken_input() -> None:
    mask = Site("", "input[1]", phase="train", root="model")
    assert not findings(CHECK, run([9, 9, 9], [1.0, 1.0, NAN], mask))


def test_between_samples_the_look_at_the_broken_step_tells() -> None:
    made = run([0], [1.0, NAN]).fact("nonfinite", 1, where="loss", bad_inputs=["input[0]"])
    (found,) = findings(CHECK, made)
    assert found.step == 1


def test_a_target_without_a_value_is_found_at_its_loss() -> None:
    call = Site(op="mse_loss", file="train.py", line=29, phase="train")
    made = FakeRun().signal("target.nonfinite", [0, 2], call).signal("loss", [1.0, NAN], LOSS)
    (found,) = findings(CHECK, made)
    assert found.site == call
    assert found.message.startswith("the target contains 2")


def culprit(made: FakeRun, step: int, **data: object) -> FakeRun:
    return made.fact("culprit", step, **{"where": "loss", "found": True, "why": "0 / 0", **data})


def test_an_operation_that_a_replay_has_seen_clears_the_data() -> None:
    for phase in ("forward", "backward", "parameter"):
        assert not findings(CHECK, culprit(run([0, 0, 1], [1.0, 1.0, NAN]), 2, phase=phase))


def test_what_the_program_is_known_to_have_computed_is_no_data() -> None:
    made = culprit(run([0, 0, 1], [1.0, 1.0, NAN]), 2, found=False, reason="not covered", computed=True)
    assert not findings(CHECK, made)


def test_a_batch_that_a_replay_has_seen_is_the_data_itself() -> None:
    (found,) = findings(CHECK, culprit(run([0, 0, 1], [1.0, 1.0, NAN]), 2, phase="batch"))
    assert "the data itself is NaN or infinite" in found.message


def test_without_a_replay_no_more_is_said_than_that_it_came_before_the_model() -> None:
    made = culprit(run([0, 0, 1], [1.0, 1.0, NAN]), 2, found=False, reason="on an accelerator")
    (found,) = findings(CHECK, made)
    assert "the data itself" not in found.message
    assert "before the model and the loss ran" in found.message


def test_an_input_that_another_model_computed_is_no_data() -> None:
    made = run([0, 0, 1], [1.0, 1.0, NAN]).fact("nonfinite", 2, where="loss", bad_inputs=[])
    assert not findings(CHECK, made)
