from __future__ import annotations

import pytest
from fake_run import FakeRun, findings

from clew.checks.exp.batch_leak import BatchLeak
from clew.checks.runner import ask
from clew.records.finding import Severity

PLACE = {"module": "head", "op": "view", "root": "model", "file": "net.py", "line": 12}


def made(effect: float, op: str = "view", **more: object) -> FakeRun:
    return FakeRun().experiment("batch-leak", effect=effect, row=3, place={**PLACE, "op": op}, **more)


def test_an_output_that_changes_with_other_samples_is_an_error_at_the_first_operation() -> None:
    (found,) = findings(BatchLeak(), made(0.0011))
    assert found.severity is Severity.ERROR
    assert found.message.endswith("depends on the other samples of the batch: view in head mixes them")
    assert (found.site.file, found.site.line) == ("net.py", 12)
    assert found.evidence[0].text == (
        "with all samples but sample 3 replaced, its output changes 0.0011 times as much as when the sample "
        "itself is replaced"
    )


def test_a_normalisation_by_hand_is_a_warning_that_may_be_wrong() -> None:
    (found,) = findings(BatchLeak(), made(0.2, "mean"))
    assert (found.severity, found.confidence) == (Severity.WARNING, "possible")


def test_rounding_is_no_leak() -> None:
    assert not findings(BatchLeak(), made(0.001))


def test_an_intended_interaction_is_not_judged_and_says_why() -> None:
    found, reason = ask(BatchLeak(), made(0.5, meant="the output compares all samples").view())
    assert not found
    assert reason == "batch interaction is intended here: the output compares all samples"


@pytest.mark.parametrize(
    ("op", "time_first", "fix"),
    [
        ("lstm", "nn.LSTM", "nn.LSTM(…, batch_first=True)"),
        ("reshape", None, "x.transpose(0, 1)"),
        ("softmax", None, "softmax(x, dim=-1)"),
        ("bmm", None, "keep the batch dimension out"),
    ],
)
def test_the_fix_fits_the_operation(op: str, time_first: str | None, fix: str) -> None:
    (found,) = findings(BatchLeak(), made(0.5, op, time_first=time_first))
    assert found.fix.startswith(fix)
