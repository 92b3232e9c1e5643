from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from subjects import HEALTHY, batches, judged, mlp, tried, two_towers
from torch import nn

from clew.checks.mode.batch_size_unfit import BatchSizeUnfit as Check
from clew.labs.experiments.learning.gradient_noise import GradientNoise
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge
from clew.labs.snapshot.users_step.subject_from_call import subject_of
from clew.records.finding import Severity


@pytest.mark.parametrize("name", [name for name in HEALTHY if name != "two_towers"])
def test_the_batch_size_of_a_healthy_program_is_left_alone(name: str) -> None:
    result = tried(GradientNoise(), HEALTHY[name]())
    assert judged(Check(), result) == []
    assert len(result.data.points) == 3


def faint(size: int, signal: float, noise: float, features: int, offset: float = 0.0) -> Subject:
    """A rule of two features under noise."""
    torch.manual_seed(0)
    x = torch.randn(16 * size, features)
    y = offset + signal * (x[:, :1] + x[:, 1:2] / 2) + noise * torch.randn(len(x), 1)
    model = mlp(features, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    return subject_of(model, F.mse_loss, batches(x, y, size=size, most=16), optimizer)


def test_small_batches_of_a_faint_rule_are_advice() -> None:
    (found,) = judged(Check(), tried(GradientNoise(), faint(8, 0.3, 1.0, 64)))
    assert found.severity is Severity.ADVICE
    assert "nearly all noise" in found.message


def test_a_noise_scale_that_so_few_batches_cannot_tell_is_left_alone() -> None:
    result = tried(GradientNoise(), faint(1, 0.6, 1.0, 8))
    assert all(point.least < 10 for point in result.data.points)
    assert judged(Check(), result) == []


def test_huge_batches_of_a_clear_rule_are_advice_and_small_ones_are_not() -> None:
    (found,) = judged(Check(), tried(GradientNoise(), faint(2048, 3.0, 0.1, 8, offset=4.0)))
    assert "larger than necessary" in found.message
    assert judged(Check(), tried(GradientNoise(), faint(64, 3.0, 0.1, 8, offset=4.0))) == []


def test_the_noise_scale_is_that_of_a_known_gradient() -> None:
    """Each of 50 entries of a sample's gradient is 1 + e, with e of variance 9: 450 / 50 samples."""
    torch.manual_seed(0)
    model = nn.Linear(50, 1, bias=False)
    values = 1 + 3 * torch.randn(1600, 50)

    def step(pair: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        return model(pair[0]).mean()

    data = batches(values, values, size=100, most=16)
    subject = subject_of(model, None, data, torch.optim.SGD(model.parameters(), lr=1e-6), step=step)
    (first, *_) = tried(GradientNoise(), subject).data.points
    assert first.scale == pytest.approx(9, rel=0.2)
    assert first.least < first.scale < first.most


def test_a_loss_among_the_samples_of_a_batch_is_not_judged() -> None:
    with pytest.raises(CannotJudge, match="with each other"):
        tried(GradientNoise(), two_towers())


def test_a_single_batch_is_cut_into_parts() -> None:
    subject = HEALTHY["cnn"]()
    del subject.batches[1:]
    assert tried(GradientNoise(), subject).data.compared == 8
