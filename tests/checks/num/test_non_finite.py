from __future__ import annotations

import math
from typing import Any

from fake_run import LOSS, STEP, FakeRun, findings

from clew.checks.num.non_finite import NonFinite
from clew.records.finding import Severity
from clew.records.site import Site

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
    assert "the model's input was already non-finite (input[0])" in found.message
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


EVAL = Site(op="cross_entropy", file="a.py", line=9, phase="eval")


def evaluated(**told: Any) -> FakeRun:
    run = FakeRun().signal("loss", [1.0] * 8, LOSS).signal("loss", [0.9, NAN], EVAL, steps=[3, 7])
    data = {"where": "evaluation", "file": "a.py", "line": 9, "kind": "nan", **told}
    return run.fact("nonfinite", 7, **data)


def test_a_mean_over_no_targets_in_evaluation_is_not_a_fault() -> None:
    assert not findings(NonFinite(), FakeRun().signal("loss", [NAN], EVAL).signal("loss", [1.0], LOSS))


def test_a_loss_that_is_nan_in_evaluation_alone_is_a_warning_with_its_samples() -> None:
    (found,) = findings(NonFinite(), evaluated(bad_inputs=["prediction"], samples=[50], batch=100))
    assert (found.severity, found.site, found.step) == (Severity.WARNING, EVAL, 7)
    assert found.message == "the loss of the evaluation at step 7 is NaN, while training is finite"
    told = [e.text for e in found.evidence]
    assert told == [
        "first seen in the predictions of 1 of 100 samples of the batch: 50",
        "1 of 2 evaluations is not finite",
    ]


def test_spoilt_running_statistics_are_named() -> None:
    (found,) = findings(NonFinite(), evaluated(bad_weights=["bn.running_var"]))
    assert found.evidence[0].text == "non-finite in the model: bn.running_var"
    assert "running statistics" in found.fix


def test_an_evaluation_after_training_went_wrong_is_no_finding_of_its_own() -> None:
    run = evaluated().signal("grad.norm", [1.0, NAN], STEP)
    (found,) = findings(NonFinite(), run)
    assert found.severity is Severity.ERROR


def test_updates_that_a_scaler_skips_for_ever_are_an_error() -> None:
    run = FakeRun().signal("loss", [1.0], LOSS)
    run.fact("nonfinite", 0, where="gradient", kind="nan", skipped=11, scale=1.0, parameters=["fc.weight"])
    (found,) = findings(NonFinite(), run)
    assert found.severity is Severity.ERROR
    assert found.message.startswith(
        "the gradients are NaN at any scale: GradScaler skipped 11 updates in a row"
    )
    told = [e.text for e in found.evidence]
    assert "11 updates in a row skipped before it, down to a scale of 1" in told
