from __future__ import annotations

import pytest
from fake_run import FakeRun, findings

from clew.checks.exp.future_leak import SURE, FutureLeak
from clew.records.finding import Severity


def made(effect: float, why: str = SURE, op: str = "lstm") -> FakeRun:
    place = {"module": "rnn", "op": op, "root": "model", "file": "net.py", "line": 5}
    return FakeRun().experiment("future-leak", effect=effect, why=why, last=7, place=place)


def test_outputs_that_depend_on_later_inputs_are_an_error_at_the_operation() -> None:
    (found,) = findings(FutureLeak(), made(0.0011))
    assert (found.severity, found.confidence) == (Severity.ERROR, "certain")
    assert found.message.endswith("through lstm in rnn")
    assert found.fix == "bidirectional=False"
    assert [e.text for e in found.evidence] == [
        "with different inputs after position 7, the outputs up to it change 0.0011 times as much as the "
        "outputs after it",
        f"it should only look back: {SURE}",
    ]


def test_it_is_less_sure_where_only_a_mask_or_a_name_says_that_it_should_look_back() -> None:
    (found,) = findings(FutureLeak(), made(0.5, "its attention gets a causal mask"))
    assert (found.severity, found.confidence) == (Severity.WARNING, "possible")


@pytest.mark.parametrize("effect", [0.001, 0.0])
def test_rounding_is_no_leak(effect: float) -> None:
    assert not findings(FutureLeak(), made(effect))
