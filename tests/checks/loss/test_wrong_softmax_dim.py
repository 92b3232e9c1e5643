from __future__ import annotations

import math
from typing import Any

import pytest
from fake_run import FakeRun, findings
from loss_calls import call_site, loss_call

from clew.checks.loss.wrong_softmax_dim import WrongSoftmaxDim
from clew.records.finding import Severity

CHECK = WrongSoftmaxDim()


def scores(*axis: float, kind: str = "nll_loss", shape: tuple[int, ...] = (32, 10), **output: Any) -> FakeRun:
    return loss_call(kind, shape, **output).signal("loss_input.axis", axis, call_site(kind))


def test_a_softmax_over_the_batch_is_an_error_at_the_loss_call() -> None:
    (found,) = findings(CHECK, scores(0.0, 0.0, 0.0))
    assert (found.severity, found.site) == (Severity.ERROR, call_site("nll_loss"))
    assert "dimension 0 (the batch) of (32, 10)" in found.message


def test_a_softmax_that_no_dimension_of_the_loss_input_shows_was_over_another_one() -> None:
    run = scores(-1.0, -1.0, -1.0, made_by="softmax", dim=0)
    assert "another dimension" in findings(CHECK, run)[0].message


@pytest.mark.parametrize("output", [{}, {"made_by": "softmax", "picked": True}, {"made_by": "sigmoid"}])
def test_scores_that_are_no_probabilities_are_left_alone(output: dict[str, Any]) -> None:
    assert not findings(CHECK, scores(-1.0, -1.0, -1.0, **output))


@pytest.mark.parametrize("axis", [(1.0, 1.0, 1.0), (0.0, 1.0, 0.0), (0.0, math.nan, 0.0)])
def test_one_batch_over_the_classes_is_enough_to_be_silent(axis: tuple[float, ...]) -> None:
    assert not findings(CHECK, scores(*axis))


def test_other_losses_are_judged_only_by_a_softmax_over_the_batch_that_was_seen() -> None:
    assert not findings(CHECK, scores(0.0, 0.0, 0.0, kind="mse_loss"))
    assert findings(CHECK, scores(0.0, 0.0, 0.0, kind="mse_loss", made_by="softmax", dim=-2))


@pytest.mark.parametrize("shape", [(1, 10), (32, 1), (10,)])
def test_a_batch_or_class_of_one_is_not_judged(shape: tuple[int, ...]) -> None:
    assert not findings(CHECK, scores(0.0, 0.0, 0.0, shape=shape))


def test_two_batches_give_no_verdict() -> None:
    assert not findings(CHECK, scores(0.0, 0.0))
    assert CHECK.unjudged(scores(0.0, 0.0).view()) == "needs 3 batches, has 2"
