from __future__ import annotations

from typing import Any

from fake_run import FakeRun, findings

from clew.checks.str.dropout_misplaced import DropoutMisplaced
from clew.records.finding import Finding, Severity

CHECK = DropoutMisplaced()


def dropout(p: float, **more: Any) -> list[Finding]:
    row = {"path": "drop", "p": p, "module": True, "norm": None, "loss": False, **more}
    run = FakeRun().model(("a", "Linear"), ("drop", "Dropout"), ("norm", "BatchNorm1d"))
    return findings(CHECK, run.fact("structure", root="model", dropouts=[row]))


def test_nine_tenths_is_too_much_and_a_little_less_is_not() -> None:
    (found,) = dropout(0.9)
    assert (found.severity, found.site.module) == (Severity.WARNING, "drop")
    assert "nn.Dropout(0.1)" in found.fix
    assert not dropout(0.89)


def test_dropping_everything_is_an_error() -> None:
    (found,) = dropout(1.0)
    assert found.severity is Severity.ERROR


def test_any_dropout_on_what_the_loss_gets_is_found() -> None:
    (found,) = dropout(0.1, loss=True)
    assert found.severity is Severity.WARNING
    assert "10% of the predictions" in found.message


def test_before_a_normalisation_it_depends_on_how_much_is_dropped() -> None:
    assert [f.severity for f in dropout(0.5, norm="norm")] == [Severity.WARNING]
    assert [f.severity for f in dropout(0.49, norm="norm")] == [Severity.ADVICE]


def test_a_call_points_at_its_line() -> None:
    (found,) = dropout(0.95, path="a.dropout", module=False, file="net.py", line=7)
    assert (found.site.module, found.site.op, found.site.line) == ("a", "dropout", 7)
