"""Learning curves of programs with enough samples, and with too few."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from subjects import HEALTHY, diabetes, digits, judged, mlp, tried
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

from clew.checks.adv.too_few_examples import TooFewExamples as Check
from clew.labs.experiments.learning.growing_subsets import GrowingSubsets
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge
from clew.labs.snapshot.users_step.subject_from_call import subject_of


def program(x: Tensor, y: Tensor, loss: Any = F.cross_entropy, outputs: int = 10) -> Subject:
    torch.manual_seed(0)
    model = mlp(x.shape[1], outputs, 64)
    loader = DataLoader(TensorDataset(x, y), batch_size=20, shuffle=True)
    return subject_of(model, loss, loader, torch.optim.Adam(model.parameters(), 3e-3))


def some_digits(count: int) -> tuple[Tensor, Tensor]:
    x, y = digits()
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))[:count]
    return x.flatten(1)[order], y[order]


def test_a_few_dozen_digits_are_too_few() -> None:
    result = tried(GrowingSubsets(), program(*some_digits(60)))
    (finding,) = judged(Check(), result)
    assert finding.severity.value == "advice"
    assert "more samples would help" in finding.message
    assert finding.evidence[0].x == (11, 22, 45)


def test_over_a_thousand_digits_are_enough() -> None:
    assert judged(Check(), tried(GrowingSubsets(), program(*some_digits(1300)))) == []


def test_a_regression_limited_by_noise_would_not_profit() -> None:
    x, y = diabetes()
    assert judged(Check(), tried(GrowingSubsets(), program(x, y, F.mse_loss, 1))) == []


def test_a_part_of_a_large_dataset_says_nothing() -> None:
    x = torch.randn(3000, 8)
    with pytest.raises(CannotJudge, match="more samples than the 2000"):
        tried(GrowingSubsets(), program(x, torch.zeros(3000, dtype=torch.long)))


def test_a_handful_of_samples_can_not_be_divided() -> None:
    with pytest.raises(CannotJudge, match="10 samples"):
        tried(GrowingSubsets(), program(*some_digits(10)))


def test_without_a_loader_the_number_of_samples_is_not_known() -> None:
    with pytest.raises(CannotJudge, match="number of samples is unknown"):
        tried(GrowingSubsets(), HEALTHY["cnn"]())
