from __future__ import annotations

import pytest
from fake_run import FakeRun, findings
from loss_calls import call_site, loss_call

from clew.checks.loss.raw_scores_into_nll import RawScoresIntoNll
from clew.records.finding import Severity

CHECK = RawScoresIntoNll()
NLL = call_site("nll_loss")


def classifier(*logsum: float, shape: tuple[int, ...] = (32, 10)) -> FakeRun:
    return loss_call("nll_loss", shape).signal("loss_input.logsum", logsum, NLL)


def test_scores_whose_exponentials_do_not_sum_to_one_are_an_error_at_the_loss_call() -> None:
    (found,) = findings(CHECK, classifier(2.3, 0.11, 5.0))
    assert (found.severity, found.step, found.site) == (Severity.ERROR, 0, NLL)
    assert "raw scores" in found.message


def test_probabilities_are_told_from_raw_scores() -> None:
    run = classifier(2.4, 2.4, 2.4).signal("loss_input.simplex", [1.0, 1.0, 1.0], NLL)
    (found,) = findings(CHECK, run)
    assert "probabilities" in found.message
    assert "log_softmax" in found.fix


@pytest.mark.parametrize("values", [(0.1, 2.0, 2.0), (0.0, 0.0, 0.0), (0.01, 0.02, 0.1)])
def test_one_batch_of_log_probabilities_is_enough_to_be_silent(values: tuple[float, ...]) -> None:
    assert not findings(CHECK, classifier(*values))


def test_two_batches_give_no_verdict() -> None:
    run = classifier(3.0, 3.0)
    assert not findings(CHECK, run)
    assert CHECK.unjudged(run.view()) == "needs 3 batches, has 2"


def test_a_single_class_is_not_judged() -> None:
    assert not findings(CHECK, classifier(3.0, 3.0, 3.0, shape=(32, 1)))


def test_what_is_normalised_over_another_dimension_is_another_fault() -> None:
    assert not findings(CHECK, classifier(3.0, 3.0, 3.0).signal("loss_input.axis", [0.0, 0.0, 0.0], NLL))


def test_a_softmax_that_does_not_show_along_the_classes_is_another_fault() -> None:
    run = loss_call("nll_loss", made_by="log_softmax", dim=0).signal("loss_input.logsum", [3.0] * 3, NLL)
    assert not findings(CHECK, run.signal("loss_input.axis", [-1.0] * 3, NLL))
