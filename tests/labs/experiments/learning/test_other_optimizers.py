from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from subjects import HEALTHY, batches, judged, tried
from torch import Tensor, nn
from torch.optim import SGD, Adam, Optimizer

from clew.checks.exp.optimizer_unfit import OptimizerUnfit as Check
from clew.labs.experiments.learning.other_optimizers import OtherOptimizers
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.users_step.subject_from_call import subject_of
from clew.records.finding import Severity


@pytest.mark.parametrize("name", ["wine", "regression", "tagger", "vae", "two_towers", "segmentation"])
def test_the_optimizer_of_a_healthy_program_is_left_alone(name: str) -> None:
    assert judged(Check(), tried(OtherOptimizers(), HEALTHY[name]())) == []


class Ratings(nn.Module):
    """Users and films whose vectors begin near zero, which is a saddle."""

    def __init__(self) -> None:
        super().__init__()
        self.users, self.films = nn.Embedding(40, 8), nn.Embedding(40, 8)
        nn.init.normal_(self.users.weight, std=0.01)
        nn.init.normal_(self.films.weight, std=0.01)

    def forward(self, pairs: Tensor) -> Tensor:
        return (self.users(pairs[:, 0]) * self.films(pairs[:, 1])).sum(1)


def ratings(optimizer: Callable[..., Optimizer], **options: float) -> Subject:
    torch.manual_seed(0)
    users, films = torch.randn(40, 3), torch.randn(40, 3)
    pairs = torch.randint(0, 40, (1024, 2))
    target = (users[pairs[:, 0]] * films[pairs[:, 1]]).sum(1)
    model = Ratings()
    made = batches(pairs, target, size=64, most=16)
    return subject_of(model, F.mse_loss, made, optimizer(model.parameters(), **options))


def test_an_optimizer_that_is_behind_at_every_rate_is_a_warning_with_the_better_one() -> None:
    result = tried(OtherOptimizers(), ratings(SGD, lr=0.1))
    (found,) = judged(Check(), result)
    assert found.severity is Severity.WARNING
    assert "SGD does not suit this network" in found.message
    assert "Adam" in found.fix
    assert [len(row.gains) for row in result.data.rows] == [3, 3]


def test_the_same_network_with_one_that_fits_is_left_alone() -> None:
    assert judged(Check(), tried(OtherOptimizers(), ratings(Adam, lr=0.01))) == []


def test_a_rate_that_is_too_low_is_not_the_optimizers_fault() -> None:
    for rate in (3e-4, 1e-8):
        assert judged(Check(), tried(OtherOptimizers(), ratings(Adam, lr=rate))) == []
