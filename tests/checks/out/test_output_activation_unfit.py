from __future__ import annotations

from typing import Any

import pytest
from fake_run import FakeRun, findings
from loss_calls import call_site, loss_call

from clew.checks.out.output_activation_unfit import OutputActivationUnfit
from clew.records.finding import Severity

CHECK = OutputActivationUnfit()


def outputs(kind: str, made_by: str, steps: int = 5, **more: Any) -> FakeRun:
    run = loss_call(kind, made_by=made_by, **more)
    return run.signal("loss_input.min", [0.0] * steps, call_site(kind))


@pytest.mark.parametrize(
    ("made_by", "severity"),
    [("relu", Severity.ERROR), ("sigmoid", Severity.ERROR), ("tanh", Severity.WARNING)],
)
def test_scores_of_classes_must_not_be_squashed(made_by: str, severity: Severity) -> None:
    (found,) = findings(CHECK, outputs("cross_entropy", made_by))
    assert (found.severity, found.site) == (severity, call_site("cross_entropy"))
    assert made_by in found.message


@pytest.mark.parametrize(("outside", "found"), [(0.11, 1), (0.1, 0)])
def test_targets_out_of_reach_of_the_last_activation_are_an_error(outside: float, found: int) -> None:
    run = outputs("mse_loss", "relu").signal("target.outside", [outside] * 5, call_site("mse_loss"))
    assert len(findings(CHECK, run)) == found


def test_a_linear_output_reaches_everything() -> None:
    run = outputs("mse_loss", "").signal("target.outside", [0.9] * 5, call_site("mse_loss"))
    assert not findings(CHECK, run)


def test_a_softmax_over_one_unit_is_an_error() -> None:
    run = outputs("binary_cross_entropy", "softmax", shape=(32, 1), dim=1)
    assert "single unit" in findings(CHECK, run)[0].message


@pytest.mark.parametrize(
    "run",
    [
        outputs("cross_entropy", "softmax", dim=1),
        outputs("nll_loss", "log_softmax", dim=1),
        outputs("nll_loss", "sigmoid", logged=True),
        outputs("binary_cross_entropy", "sigmoid"),
        outputs("binary_cross_entropy_with_logits", "sigmoid"),
    ],
    ids=[
        "softmax: another check",
        "log_softmax",
        "logarithm",
        "sigmoid and BCE",
        "sigmoid twice: another check",
    ],
)
def test_what_fits_or_belongs_to_another_check_is_left_alone(run: FakeRun) -> None:
    assert not findings(CHECK, run)


def test_four_batches_give_no_verdict() -> None:
    run = outputs("cross_entropy", "relu", steps=4)
    assert not findings(CHECK, run)
    assert CHECK.unjudged(run.view()) == "needs 5 sampled batches, has 4"
