from __future__ import annotations

import pytest
from fake_run import FakeRun, findings
from loss_calls import call_site, loss_call, refused

from clew.checks.loss.logits_into_bce import LogitsIntoBce
from clew.records.finding import Severity

CHECK = LogitsIntoBce()
BCE = "binary_cross_entropy"
SAID = "all elements of input should be between 0 and 1"


def clamped(*ends: float, made_by: str = "clamp") -> FakeRun:
    return loss_call(BCE, (32, 1), made_by=made_by).signal("loss_input.ends", ends, call_site(BCE))


def test_a_refused_call_is_explained_at_its_line_with_the_range_it_got() -> None:
    (found,) = findings(CHECK, refused(BCE, SAID, input_min=-2.5, input_max=3.25, input_nan=False))
    assert (found.severity, found.step, found.site) == (Severity.ERROR, 7, call_site(BCE))
    assert "from -2.5 to 3.25" in found.message


@pytest.mark.parametrize(
    "data",
    [
        {"input_min": 0.1, "input_max": 0.9, "input_nan": True},
        {"input_min": -2.0, "input_max": 3.0, "input_nan": True},
        {},
    ],
)
def test_a_refusal_for_another_reason_is_not_explained_so(data: dict[str, float]) -> None:
    assert not findings(CHECK, refused(BCE, SAID, **data))


def test_refused_targets_are_another_fault() -> None:
    said = "all elements of target should be between 0 and 1"
    assert not findings(CHECK, refused(BCE, said, input_min=-0.1, input_max=1.1))


def test_scores_cut_off_at_the_ends_are_an_error() -> None:
    (found,) = findings(CHECK, clamped(0.06, 0.06, 0.06))
    assert "6%" in found.message


def test_a_clamp_that_hardly_cuts_is_left_alone() -> None:
    assert not findings(CHECK, clamped(0.05, 0.05, 0.05))


def test_a_sigmoid_that_saturates_is_left_alone() -> None:
    assert not findings(CHECK, clamped(0.5, 0.5, 0.5, made_by="sigmoid"))


def test_two_batches_give_no_verdict() -> None:
    assert not findings(CHECK, clamped(0.5, 0.5))
    assert CHECK.unjudged(clamped(0.5, 0.5).view()) == "needs 3 batches, has 2"
