from __future__ import annotations

import math

import pytest
from fake_run import LOSS_CALL, FakeRun, findings

from clew.checks.loss.softmax_before_cross_entropy import SoftmaxBeforeCrossEntropy
from clew.records.finding import Severity
from clew.records.site import Site

CHECK = SoftmaxBeforeCrossEntropy()


def classifier(*simplex: float, kind: str = "cross_entropy", shape: tuple[int, ...] = (32, 10)) -> FakeRun:
    run = FakeRun().fact("loss", kind=kind, file="train.py", line=29, input_shape=list(shape))
    return run.signal("loss_input.simplex", simplex, LOSS_CALL)


def test_three_batches_of_probabilities_are_an_error_at_the_loss_call() -> None:
    (found,) = findings(CHECK, classifier(1.0, 0.99, 1.0))
    assert (found.severity, found.step, found.site) == (Severity.ERROR, 0, LOSS_CALL)
    assert any("can't get below 1.46" in e.text for e in found.evidence)


def test_two_batches_give_no_verdict() -> None:
    run = classifier(1.0, 1.0)
    assert not findings(CHECK, run)
    assert CHECK.unjudged(run.view()) == "needs 3 sampled batches, has 2"


@pytest.mark.parametrize("values", [(1.0, 1.0, 0.98), (0.0, 0.0, 0.0), (1.0, math.nan, 1.0)])
def test_one_batch_of_logits_is_enough_to_be_silent(values: tuple[float, ...]) -> None:
    assert not findings(CHECK, classifier(*values))


def test_other_losses_may_take_probabilities() -> None:
    run = classifier(1.0, 1.0, 1.0, kind="nll_loss")
    assert not findings(CHECK, run)
    assert CHECK.unjudged(run.view()) is None


@pytest.mark.parametrize("shape", [(32, 1), (1,), (4, 1, 8, 8)])
def test_a_single_class_is_not_judged(shape: tuple[int, ...]) -> None:
    assert not findings(CHECK, classifier(1.0, 1.0, 1.0, shape=shape))


def test_another_loss_call_is_not_blamed() -> None:
    run = classifier(0.0, 0.0, 0.0)
    run.signal("loss_input.simplex", [1.0, 1.0, 1.0], Site(op="nll_loss", file="train.py", line=50))
    assert not findings(CHECK, run)


def test_the_softmax_layer_is_named_where_there_is_one() -> None:
    run = classifier(1.0, 1.0, 1.0).model(("fc", "Linear"), ("prob", "Softmax"))
    (found,) = findings(CHECK, run)
    assert found.fix == "remove layer prob (Softmax): return the logits"
    assert found.evidence[1].site == Site(module="prob", root="model", file="net.py", line=11)
