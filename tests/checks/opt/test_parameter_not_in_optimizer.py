from __future__ import annotations

from fake_run import FakeRun, findings, parameter

from clew.checks.opt.parameter_not_in_optimizer import ParameterNotInOptimizer
from clew.records.finding import Severity

CHECK = ParameterNotInOptimizer()


def test_a_parameter_with_a_gradient_and_no_optimizer_is_found() -> None:
    run = FakeRun().parameters(parameter("fc1"), parameter("fc2", optimizer=None), parameter("fc2", "bias"))
    (found,) = findings(CHECK, run)
    assert (found.severity, found.site.module, found.site.param) == (Severity.WARNING, "fc2", "weight")
    assert "fc2.weight gets gradients" in found.message
    assert any("2 of 3 parameters are in an optimizer" in e.text for e in found.evidence)


def test_a_whole_module_is_named_instead_of_its_layers() -> None:
    forgotten = [parameter(f"encoder.{n}", optimizer=None) for n in range(3)]
    (found,) = findings(CHECK, FakeRun().parameters(*forgotten, parameter("decoder.0")))
    assert found.site.module == "encoder"
    assert "its 3 parameters" in found.message


def test_what_gets_no_gradient_or_wants_none_is_not_missed() -> None:
    run = FakeRun().parameters(
        parameter("a"),
        parameter("b", optimizer=None, has_grad=False),
        parameter("c", optimizer=None, requires_grad=False),
    )
    assert not findings(CHECK, run)


def test_the_newest_fact_counts() -> None:
    run = FakeRun().parameters(parameter("a"), parameter("b", optimizer=None))
    assert not findings(CHECK, run.parameters(parameter("a"), parameter("b", optimizer=1)))


def test_a_new_head_on_loaded_weights_is_a_choice_but_a_resumed_run_is_not() -> None:
    backbone = parameter("backbone", optimizer=None, loaded=True)
    assert not findings(CHECK, FakeRun().parameters(backbone, parameter("head")))
    assert findings(CHECK, FakeRun().parameters(backbone, parameter("head", loaded=True)))


def two_models(**more: object) -> FakeRun:
    run = FakeRun().parameters(parameter("fc"), root="head")
    return run.parameters(parameter("conv", optimizer=None), root="encoder", **more)


def test_a_forgotten_model_is_found_with_both_readings() -> None:
    (found,) = findings(CHECK, two_models(root_training=True))
    assert "encoder" in found.fix
    assert "it was forgotten, or should stay random" in found.message


def test_a_model_in_evaluation_mode_or_with_loaded_weights_is_not_missed() -> None:
    assert not findings(CHECK, two_models(root_training=False))
    loaded = parameter("conv", optimizer=None, loaded=True)
    assert not findings(CHECK, two_models().parameters(loaded, root="encoder", root_training=True))


def test_without_any_optimizer_nothing_is_missing_from_it() -> None:
    run = FakeRun().parameters(parameter("fc", optimizer=None), root_training=True)
    assert not findings(CHECK, run)
