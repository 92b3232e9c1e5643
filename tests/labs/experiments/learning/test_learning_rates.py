"""The user's learning rate against others, and the range test."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from subjects import (
    HEALTHY,
    Fact,
    batches,
    cnn_classifier,
    judged,
    mlp,
    normalised_regression,
    tried,
    wine,
    wine_classifier,
)

from clew.checks.adv.hyperparameters_off import HyperparametersOff as RangeCheck
from clew.checks.opt.learning_rate_too_high import LearningRateTooHigh as HighCheck
from clew.checks.opt.learning_rate_too_low import LearningRateTooLow as LowCheck
from clew.labs.experiments.learning.learning_rates import HigherRates, LowerRates, RangeTest
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.users_step.subject_from_call import subject_of
from clew.records.finding import Severity


@pytest.mark.parametrize("name", HEALTHY)
def test_the_rate_of_a_healthy_program_is_left_alone(name: str) -> None:
    subject = HEALTHY[name]()
    assert judged(HighCheck(), tried(LowerRates(), subject)) == []
    assert judged(LowCheck(), tried(HigherRates(), subject)) == []
    assert judged(RangeCheck(), tried(RangeTest(), subject)) == []


@pytest.mark.parametrize("subject", [lambda: wine_classifier(30.0), lambda: cnn_classifier(0.3)])
def test_a_rate_that_leaves_the_loss_where_it_is_or_worse_is_too_high(subject: object) -> None:
    result = tried(LowerRates(), subject())  # type: ignore[operator]
    (found,) = judged(HighCheck(), result)
    assert found.severity is Severity.WARNING
    assert "too high" in found.message
    assert len(result.data.rows[0].gains) == 3
    assert [len(e.values) > 0 for e in found.evidence] == [True, True, False]


@pytest.mark.parametrize("subject", [lambda: wine_classifier(1e-5), lambda: cnn_classifier(1e-6)])
def test_a_rate_that_hardly_moves_is_too_low(subject: object) -> None:
    result = tried(HigherRates(), subject())  # type: ignore[operator]
    (found,) = judged(LowCheck(), result)
    assert found.severity is Severity.WARNING
    assert "too low" in found.message


def test_a_cautious_rate_is_not_called_too_low() -> None:
    for subject in (cnn_classifier(1e-4), normalised_regression(1e-3)):
        assert judged(LowCheck(), tried(HigherRates(), subject)) == []
        assert judged(RangeCheck(), tried(RangeTest(), subject)) == []


def test_loaded_weights_may_want_a_low_rate() -> None:
    loaded = Fact("parameters", {"root": "model", "items": [{"name": "0.weight", "loaded": True}]})
    result = tried(HigherRates(), cnn_classifier(1e-6))
    assert judged(LowCheck(), result, loaded) == []


def test_a_high_rate_that_a_schedule_leads_up_to_is_not_judged() -> None:
    subject = wine_classifier(30.0)
    torch.optim.lr_scheduler.LambdaLR(subject.optimizers[0], lambda step: min(1.0, (step + 1) / 100))
    result = tried(LowerRates(), subject)
    assert result.data.warms_up
    assert judged(HighCheck(), result) == []


def slow() -> Subject:
    """Two powers of ten below where it learns, which is not yet standing still."""
    return wine_classifier(4e-4)


def test_the_range_test_names_the_region_and_marks_the_users_rate() -> None:
    result = tried(RangeTest(), slow())
    (found,) = judged(RangeCheck(), result)
    assert found.severity is Severity.ADVICE
    assert found.confidence == "possible"
    assert result.data.low < 0.2 < result.data.diverges
    assert result.plots[0].log_x
    assert "4e-04" in result.plots[0].title or "0.0004" in result.plots[0].title
    assert found.evidence[0].x_label == "learning rate"


def test_trials_are_shared_and_the_same_when_made_again() -> None:
    subject = wine_classifier(30.0)
    first = tried(LowerRates(), subject).data
    made = len(subject.cache["rates"].done)
    tried(LowerRates(), subject)
    assert len(subject.cache["rates"].done) == made
    assert tried(LowerRates(), wine_classifier(30.0)).data == first


def test_another_optimizer_than_the_first_group_keeps_the_proportion_of_its_rates() -> None:
    torch.manual_seed(0)
    model = mlp(13, 3)
    groups = [{"params": model[0].parameters(), "lr": 1e-3}, {"params": model[2:].parameters(), "lr": 1e-2}]
    subject = subject_of(model, F.cross_entropy, batches(*wine(), size=16), torch.optim.Adam(groups))
    assert judged(HighCheck(), tried(LowerRates(), subject)) == []
    assert [group["lr"] for group in subject.optimizers[0].param_groups] == [1e-3, 1e-2]
