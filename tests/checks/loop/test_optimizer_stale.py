from __future__ import annotations

from typing import Any

from fake_run import FakeRun, findings, parameter

from clew.checks.loop.optimizer_stale import OptimizerStale
from clew.records.finding import Severity

CHECK = OptimizerStale()


def stale(*items: dict[str, Any], **more: Any) -> FakeRun:
    usual = {"index": 0, "file": "train.py", "line": 12, "stepped": True, "held": 4, "outside": 4}
    run = FakeRun().fact("optimizer_use", 3, **{**usual, "outside_with_grad": 0, **more}, **{"class": "SGD"})
    return run.parameters(*(items or (parameter("fc", optimizer=None),)))


def test_an_optimizer_of_parameters_that_nothing_uses_is_an_error_where_it_was_made() -> None:
    (found,) = findings(CHECK, stale())
    assert (found.severity, found.site.file, found.site.line) == (Severity.ERROR, "train.py", 12)
    assert "none of its 4 is in" in found.message


def test_a_replaced_layer_is_a_warning_that_names_it() -> None:
    items = parameter("body"), parameter("head", optimizer=None)
    (found,) = findings(CHECK, stale(*items, outside=2))
    assert found.severity is Severity.WARNING
    assert "2 of its 4 are not in" in found.message
    assert "whose head is in no optimizer" in found.message


def test_bare_tensors_with_gradients_are_in_use() -> None:
    assert not findings(CHECK, stale(outside_with_grad=4))


def test_without_a_forgotten_parameter_or_a_held_stranger_nothing_is_stale() -> None:
    assert not findings(CHECK, stale(parameter("fc")))
    assert not findings(CHECK, stale(outside=0))
    assert not findings(CHECK, stale(parameter("fc", optimizer=None, has_grad=False)))
