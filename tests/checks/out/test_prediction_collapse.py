from __future__ import annotations

import pytest
from fake_run import FakeRun, findings
from loss_calls import call_site, loss_call

from clew.checks.out.prediction_collapse import PredictionCollapse
from clew.records.finding import Severity

CHECK = PredictionCollapse()


def classifier(share: float, last: int = 110, target: float = 0.5, classes: int = 10) -> FakeRun:
    steps = range(last - 100, last + 1, 10)
    run = loss_call("cross_entropy", (32, classes))
    run.signal("prediction.top_share", [share] * 11, call_site("cross_entropy"), steps)
    return run.signal("prediction.target_top_share", [target] * 11, call_site("cross_entropy"), steps)


def regression(spread: float, last: int = 110) -> FakeRun:
    steps = range(last - 100, last + 1, 10)
    return loss_call("mse_loss").signal("prediction.spread", [spread] * 11, call_site("mse_loss"), steps)


def test_one_class_for_every_sample_late_in_the_run_is_a_collapse() -> None:
    (found,) = findings(CHECK, classifier(1.0))
    assert (found.severity, found.step, found.site) == (Severity.WARNING, 10, call_site("cross_entropy"))


@pytest.mark.parametrize(
    "run",
    [
        classifier(0.998),
        classifier(1.0, last=99),
        classifier(1.0, target=0.8),
        classifier(1.0, classes=21),
    ],
    ids=["not every sample", "early", "unbalanced targets", "many classes"],
)
def test_a_model_may_prefer_a_class(run: FakeRun) -> None:
    assert not findings(CHECK, run)


def test_many_classes_are_judged_later() -> None:
    assert findings(CHECK, classifier(1.0, last=500, classes=21))


@pytest.mark.parametrize(("spread", "found"), [(0.019, 1), (0.02, 0)])
def test_predictions_that_hardly_differ_are_a_collapse(spread: float, found: int) -> None:
    assert len(findings(CHECK, regression(spread))) == found


def test_a_window_of_neighbouring_steps_is_too_short() -> None:
    run = loss_call("mse_loss").signal("prediction.spread", [0.0] * 8, call_site("mse_loss"), range(100, 108))
    assert not findings(CHECK, run)


def test_ninety_nine_steps_give_no_verdict() -> None:
    assert CHECK.unjudged(classifier(1.0, last=99).view()) == "checked only after 100 steps"
