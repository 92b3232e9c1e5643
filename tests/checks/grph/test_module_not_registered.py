from __future__ import annotations

from typing import Any

from fake_run import Fact, FakeRun, findings

from clew.checks.grph.module_not_registered import ModuleNotRegistered
from clew.records.finding import Severity

CHECK = ModuleNotRegistered()


def using(**more: Any) -> FakeRun:
    usual = {"class": "Linear", "within": "", "file": "net.py", "line": 7, "parameters": ["weight", "bias"]}
    row = {**usual, "count": 2, "held": 0, "with_grad": 2, **more}
    run = FakeRun().model(("fc", "Linear")).fact("graph", 3, root="model", unregistered=[row])
    return run.fact("optimizer_use", 3, index=0, stepped=True)


def test_a_layer_outside_of_the_model_is_found_where_it_was_made() -> None:
    (found,) = findings(CHECK, using())
    assert (found.severity, found.site.file, found.site.line) == (Severity.WARNING, "net.py", 7)
    assert found.message.startswith("Net uses a Linear that parameters() does not contain")
    assert found.fix.startswith("nn.ModuleList")


def test_bare_parameters_get_the_list_for_parameters() -> None:
    (found,) = findings(CHECK, using(within=None, **{"class": "Parameter"}))
    assert "Net uses 2 parameters that parameters() does not contain" in found.message
    assert found.fix.startswith("nn.ParameterList")


def test_what_an_optimizer_has_or_what_gets_no_gradient_is_silent() -> None:
    assert not findings(CHECK, using(held=2))
    assert not findings(CHECK, using(with_grad=0))


def test_without_an_optimizer_that_steps_nothing_is_missing() -> None:
    run = using()
    run.facts.pop()
    assert not findings(CHECK, run)


def test_an_empty_parameter_list_is_explained_at_the_users_line() -> None:
    run = FakeRun().fact("idle", reason="no step")
    error = {"message": "optimizer got an empty parameter list", "user_file": "train.py", "user_line": 5}
    run.events.append(Fact("exception", 0, error))
    (found,) = findings(CHECK, run)
    assert (found.severity, found.site.line) == (Severity.ERROR, 5)
