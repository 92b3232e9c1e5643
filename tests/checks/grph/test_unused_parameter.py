from __future__ import annotations

from typing import Any

from fake_run import NOWHERE, FakeRun, findings, parameter

from clew.checks.grph.unused_parameter import UnusedParameter
from clew.records.finding import Severity

CHECK = UnusedParameter()


def network(steps: int = 16, file: str = "net.py", **more: Any) -> FakeRun:
    run = FakeRun().model(("a", "Linear"), ("b", "Linear")).signal("wall", [0.0] * steps, NOWHERE)
    for row in run.facts[0].data["modules"]:
        row["file"] = file
    unused = [parameter("b", name, has_grad=False, **more) for name in ("weight", "bias")]
    run.parameters(parameter("a"), *unused)
    return run.fact("graph", 3, root="model", reached=1, idle=["b.weight", "b.bias"])


def test_a_layer_that_is_never_called_is_a_warning() -> None:
    (found,) = findings(CHECK, network())
    assert (found.severity, found.site.module) == (Severity.WARNING, "b")
    assert found.message.startswith("b is never used")


def test_fifteen_steps_are_no_verdict() -> None:
    run = network(steps=15)
    assert not findings(CHECK, run)
    assert CHECK.unjudged(run.view()) == "needs 16 steps, has 15"


def test_a_library_layer_or_a_loaded_model_is_advice() -> None:
    for run in (network(file="/lib/site-packages/zoo/net.py"), network(loaded=True)):
        (found,) = findings(CHECK, run)
        assert found.severity is Severity.ADVICE


def test_a_single_parameter_of_a_layer_is_advice() -> None:
    run = network()
    run.fact("graph", 4, root="model", reached=1, idle=["b.bias"])
    (found,) = findings(CHECK, run)
    assert (found.severity, found.site.param) == (Severity.ADVICE, "bias")


def test_what_no_optimizer_holds_is_not_missed() -> None:
    assert not findings(CHECK, network(optimizer=None))
