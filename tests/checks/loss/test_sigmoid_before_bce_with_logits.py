from __future__ import annotations

from fake_run import FakeRun, findings
from loss_calls import call_site, loss_call

from clew.checks.loss.sigmoid_before_bce_with_logits import SigmoidBeforeBceWithLogits
from clew.records.finding import Severity
from clew.records.site import Site

CHECK = SigmoidBeforeBceWithLogits()
KIND = "binary_cross_entropy_with_logits"


def answers(lowest: list[float], highest: list[float], made_by: str = "sigmoid") -> FakeRun:
    run = loss_call(KIND, (32, 1), made_by=made_by)
    run.signal("loss_input.min", lowest, call_site(KIND))
    return run.signal("loss_input.max", highest, call_site(KIND))


def test_the_output_of_a_sigmoid_is_an_error_at_the_loss_call() -> None:
    (found,) = findings(CHECK, answers([0.1, 0.0, 0.2], [0.9, 1.0, 0.8]))
    assert (found.severity, found.site) == (Severity.ERROR, call_site(KIND))
    assert "between 0 and 1" in found.evidence[0].text


def test_the_layer_that_made_it_is_named() -> None:
    run = answers([0.1] * 3, [0.9] * 3).model(("fc", "Linear"), ("prob", "Sigmoid"))
    run.signal("activation.mean", [0.0], Site("fc", phase="train", root="model"))
    run.signal("activation.mean", [0.0], Site("prob", "sigmoid", phase="train", root="model"))
    (found,) = findings(CHECK, run)
    assert found.fix == "remove layer prob (Sigmoid): return the raw score"


def test_logits_that_happen_to_lie_between_zero_and_one_are_left_alone() -> None:
    assert not findings(CHECK, answers([0.1] * 3, [0.9] * 3, made_by=""))


def test_a_value_above_one_is_enough_to_be_silent() -> None:
    assert not findings(CHECK, answers([0.1] * 3, [0.9, 1.01, 0.9]))


def test_two_batches_give_no_verdict() -> None:
    run = answers([0.1] * 2, [0.9] * 2)
    assert not findings(CHECK, run)
    assert CHECK.unjudged(run.view()) == "needs 3 batches, has 2"
