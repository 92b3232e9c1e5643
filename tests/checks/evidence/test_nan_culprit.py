"""The finding leads with the operation that a replay has named."""

from __future__ import annotations

import math
from typing import Any

import pytest
from fake_run import LOSS, STEP, FakeRun, findings

from clew.checks.evidence.nan_culprit import samples_of
from clew.checks.num.non_finite import NonFinite
from clew.checks.run_view import RunView

NAN = math.nan
EXP: dict[str, Any] = {
    "where": "loss",
    "found": True,
    "phase": "forward",
    "op": "exp",
    "result": "inf",
    "why": "the exponential of 99 is more than float32 can hold",
    "fix": "subtract the maximum",
    "module": "attend",
    "root": "model",
    "file": "net.py",
    "line": 7,
    "code": "w = torch.exp(s)",
    "inputs": [{"name": "input 0", "shape": [4, 3], "dtype": "float32", "min": -1.0, "max": 99.0}],
    "elements": [[2, 1]],
    "element_values": [99.0],
    "elements_of": "input 0 of exp",
    "bad_count": 9,
    "samples": [2],
    "call": [17, 24],
    "micro_batch": [3, 3],
    "notes": ["run eagerly"],
}


def diagnosed(**changes: Any) -> Any:
    run = FakeRun().signal("loss", [2.0, 1.5, NAN], LOSS).signal("grad.norm", [1.0, 9.0, NAN], STEP)
    run.model(("attend", "Attention")).fact("nonfinite", 2, where="loss", bad_weights=[], bad_inputs=[])
    run.fact("culprit", 2, **{**EXP, **changes})
    (found,) = findings(NonFinite(), run)
    return found


def test_site_message_and_fix_are_the_culprits() -> None:
    found = diagnosed(call=None, micro_batch=None)
    assert found.message == (
        "the loss became NaN at step 2: exp in attend is infinite: "
        "the exponential of 99 is more than float32 can hold"
    )
    assert (found.site.module, found.site.op, found.site.file, found.site.line) == (
        "attend",
        "exp",
        "net.py",
        7,
    )
    assert found.fix == "subtract the maximum"


def test_the_call_and_the_micro_batch_are_in_the_message() -> None:
    message = diagnosed(phase="backward").message
    assert "gradient of exp in attend is infinite (call 17 of 24 on this line, micro-batch 3): " in message


def test_the_evidence_shows_samples_and_elements_first_then_inputs_notes_and_line() -> None:
    told = [e.text for e in diagnosed(element_count=7, sample_count=1, batch=4).evidence]
    assert told[:5] == [
        "1 of 4 samples of the batch: 2",
        "input 0 of exp at [2, 1] = 99 and 4 other elements",
        "input 0: float32 (4, 3), from -1 to 99",
        "run eagerly",
        "the line: w = torch.exp(s)",
    ]


def test_elements_are_counted_where_they_are_listed_not_in_the_result() -> None:
    told = [e.text for e in diagnosed(element_count=1, bad_count=784).evidence]
    assert "input 0 of exp at [2, 1] = 99" in told


def test_a_single_number_has_no_place() -> None:
    told = [e.text for e in diagnosed(elements=[[]], element_values=[]).evidence]
    assert not any(" at " in text for text in told[:4])


@pytest.mark.parametrize(
    ("samples", "batch", "count", "told"),
    [
        ([3], 0, 0, "sample 3 of the batch"),
        ([0, 4], 32, 2, "2 of 32 samples of the batch: 0, 4"),
        (list(range(8)), 32, 10, "10 of 32 samples of the batch: 0, 1, 2, 3, 4, 5, 6, 7, …"),
        (list(range(8)), 32, 32, "all 32 samples of the batch"),
        ([0], 1, 1, "the only sample of the batch"),
        ([0, 4], 0, 0, "2 samples of the batch: 0, 4"),
    ],
)
def test_samples_are_told_with_how_many_there_are(samples, batch, count, told) -> None:
    assert samples_of(samples, batch, count) == told


def test_a_parameter_that_an_update_broke_is_shown_with_how_it_grew() -> None:
    found = diagnosed(phase="parameter", op="attend.weight", why="the parameter is NaN")
    assert found.message == "the loss became NaN at step 2: the parameter is NaN"
    assert (found.site.op, found.site.line) == ("step", STEP.line)
    assert any(e.text == "grad.norm, last steps: 1 → 9" for e in found.evidence)


def test_a_replay_without_a_culprit_says_why_and_names_nobody() -> None:
    found = diagnosed(found=False, reason="replaying the step gave finite values")
    assert found.message == "the loss became NaN at step 2"
    assert found.site == LOSS
    assert any("the operation was not found: replaying" in e.text for e in found.evidence)


def test_a_culprit_of_another_step_is_not_taken_for_this_one() -> None:
    run = FakeRun().signal("loss", [2.0, NAN, NAN], LOSS).fact("culprit", 2, **EXP)
    (found,) = findings(NonFinite(), run)
    assert found.message == "the loss became NaN at step 1"


@pytest.mark.parametrize("field", sorted(EXP))
@pytest.mark.parametrize("value", [None, "x", 3, [None], [[None]], {"a": 1}])
def test_a_damaged_field_never_raises(field: str, value: Any) -> None:
    assert diagnosed(**{field: value}).step == 2


def test_another_rank_whose_loss_was_nan_first_is_named_with_its_own_step_to_run_again() -> None:
    here = FakeRun().signal("loss", [2.0, 1.5, NAN], LOSS, steps=[0, 1, 3])
    here.signal("grad.norm", [1.0, 9.0, NAN], STEP).fact("nonfinite", 2, where="gradient", parameters=["a"])
    here.fact("repro", 2, written=True, path="/runs/1/repro/step-2")
    there = FakeRun().signal("loss", [2.0, 1.5, NAN], LOSS)
    there.fact("repro", 2, written=True, path="/runs/1/repro-rank1/step-2")
    (found,) = NonFinite().diagnose(RunView(here, {0: here, 1: there}))
    assert "on rank 1 the loss was NaN at step 2" in found.message
    texts = " ".join([found.fix, *(e.text for e in found.evidence)])
    assert "clew replay /runs/1/repro-rank1/step-2" in texts
    assert "/runs/1/repro/step-2" not in texts
    assert "the step is saved; replay it with: clew replay\n" not in texts


def test_a_rank_that_broke_later_explains_nothing() -> None:
    here = FakeRun().signal("loss", [2.0, NAN, NAN], LOSS).signal("grad.norm", [1.0, NAN, NAN], STEP)
    there = FakeRun().signal("loss", [2.0, NAN, NAN], LOSS)
    (found,) = NonFinite().diagnose(RunView(here, {0: here, 1: there}))
    assert "rank" not in found.message


def test_a_step_that_did_not_go_as_before_makes_a_finding_likely_at_most() -> None:
    assert diagnosed(reproduced=False).confidence == "likely"
    assert diagnosed().confidence == "certain"


def test_why_nothing_is_named_is_said_once() -> None:
    run = FakeRun().signal("loss", [2.0, 1.5, NAN], LOSS)
    for where in ("loss", "gradient"):
        run.fact("culprit", 2, where=where, found=False, reason=f"the {where} was finite the second time")
    (found,) = findings(NonFinite(), run)
    assert len([e for e in found.evidence if "the operation was not found" in e.text]) == 1
