from __future__ import annotations

import math

from fake_run import LOSS, STEP, FakeRun, findings

from clew.checks.numerics.non_finite import NonFinite
from clew.records import Severity, Site

NAN, INF = math.nan, math.inf


def test_finite_losses_and_gradients_are_fine() -> None:
    run = FakeRun().signal("loss", [2.0, 1.0, 1e30], LOSS).signal("grad.norm", [1.0, 0.0, 1e30], STEP)
    assert not findings(NonFinite(), run)


def test_the_first_nan_of_the_loss_is_named_with_what_came_before() -> None:
    run = FakeRun().signal("loss", [2.0, 1.5, NAN, NAN], LOSS).signal("grad.norm", [1.0, 1.0, NAN], STEP)
    (found,) = findings(NonFinite(), run)
    assert (found.severity, found.step, found.site) == (Severity.ERROR, 2, LOSS)
    assert found.message == "the loss became NaN at step 2"
    assert found.evidence[0].values == (2.0, 1.5)


def test_infinity_is_told_from_nan() -> None:
    (found,) = findings(NonFinite(), FakeRun().signal("loss", [2.0, -INF], LOSS))
    assert "infinite at step 1" in found.message


def test_a_gradient_that_fails_before_the_loss_is_blamed_with_its_parameters() -> None:
    run = FakeRun().signal("loss", [2.0, 1.5, NAN], LOSS).signal("grad.norm", [1.0, NAN, NAN], STEP)
    run.fact("nonfinite", 1, where="gradient", parameters=["fc.weight"], bad_weights=[], bad_inputs=[])
    (found,) = findings(NonFinite(), run)
    assert (found.step, found.site) == (1, STEP)
    assert "gradients became NaN at step 1, in fc.weight, while the loss was still finite" in found.message


def test_a_bad_batch_is_blamed_before_the_computation() -> None:
    run = FakeRun().signal("loss", [2.0, NAN], LOSS)
    run.fact("nonfinite", 1, where="loss", bad_inputs=["input[0]"], bad_weights=["fc.weight"])
    (found,) = findings(NonFinite(), run)
    assert "what the model was given was not finite already (input[0])" in found.message
    assert found.fix.startswith("clean the data")
    assert any("fc.weight" in e.text for e in found.evidence)


def test_a_fact_alone_is_enough() -> None:
    (found,) = findings(NonFinite(), FakeRun().fact("nonfinite", 7, where="gradient", file="a.py", line=3))
    assert (found.step, found.site) == (7, Site(file="a.py", line=3, phase="train"))


def test_a_skipped_nan_loss_is_only_a_warning() -> None:
    losses = [2.0, NAN, 1.9, 1.8, 1.7]
    (found,) = findings(NonFinite(), FakeRun().signal("loss", losses, LOSS))
    assert found.severity is Severity.WARNING
    (found,) = findings(NonFinite(), FakeRun().signal("loss", losses[:4], LOSS))
    assert found.severity is Severity.ERROR


def test_a_nan_that_reached_the_optimizer_stays_an_error() -> None:
    run = FakeRun().signal("loss", [2.0, 2.0, 1.9, 1.8, 1.7], LOSS)
    run.signal("grad.norm", [1.0, NAN, 1.0, 1.0, 1.0], STEP)
    (found,) = findings(NonFinite(), run)
    assert found.severity is Severity.ERROR


def test_a_nan_in_evaluation_is_not_a_fault_of_training() -> None:
    site = Site(op="cross_entropy", phase="eval")
    assert not findings(NonFinite(), FakeRun().signal("loss", [NAN], site).signal("loss", [1.0], LOSS))
