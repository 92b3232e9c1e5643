"""Losses that reward the opposite, and losses that reward the target."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from subjects import HEALTHY, judged, mlp, tried
from torch import Tensor, nn

from clew.checks.exp.loss_prefers_wrong import LossPrefersWrong as Check
from clew.labs.experiments.network.loss_minimum import LossMinimum
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge
from clew.labs.snapshot.users_step.subject_from_call import subject_of

Loss = Callable[[Any, Tensor], Tensor]


def classes(loss: Loss, *last: nn.Module) -> Subject:
    torch.manual_seed(0)
    return subject_of(nn.Sequential(mlp(6, 4), *last), loss, (torch.randn(32, 6), torch.randint(0, 4, (32,))))


def values(loss: Loss) -> Subject:
    torch.manual_seed(0)
    return subject_of(mlp(6, 2), loss, (torch.randn(32, 6), torch.randn(32, 2) + 1.0))


def binary(loss: Loss, *last: nn.Module) -> Subject:
    torch.manual_seed(0)
    data = (torch.randn(32, 6), torch.randint(0, 2, (32, 1)).float())
    return subject_of(nn.Sequential(mlp(6, 1), *last), loss, data)


def picked(scores: Tensor, labels: Tensor) -> Tensor:
    return scores.log_softmax(1).gather(1, labels[:, None]).mean()


WRONG = {
    "no minus sign": (lambda: classes(picked), "wrong answers"),
    "negative cross-entropy": (lambda: classes(lambda s, t: -F.cross_entropy(s, t)), "wrong answers"),
    "probability minimised": (
        lambda: classes(lambda p, t: p.gather(1, t[:, None]).mean(), nn.Softmax(1)),
        "wrong answers",
    ),
    "overlap minimised": (lambda: binary(lambda s, t: (s.sigmoid() * t).sum() / t.sum()), "wrong answers"),
    "log of chances": (lambda: binary(lambda p, t: (t * p.log()).mean(), nn.Sigmoid()), "wrong answers"),
    "error maximised": (lambda: values(lambda p, t: -((p - t) ** 2).mean()), "highest"),
    "cosine minimised": (lambda: values(lambda p, t: F.cosine_similarity(p, t).mean()), "highest"),
    "sum instead of difference": (lambda: values(lambda p, t: ((p + t) ** 2).mean()), "negative"),
    "no square": (lambda: values(lambda p, t: (t - p).mean()), "without bound"),
    "raw scores": (lambda: classes(lambda s, t: -s.gather(1, t[:, None]).mean()), "without bound"),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(WRONG))
def test_a_loss_that_is_not_lowest_at_the_target_is_an_error(name: str) -> None:
    make, says = WRONG[name]
    (finding,) = judged(Check(), tried(LossMinimum(), make()))
    assert finding.severity.value == "error"
    assert says in finding.message


def test_the_line_of_the_loss_is_named() -> None:
    (finding,) = judged(Check(), tried(LossMinimum(), classes(picked)))
    assert "gather(1, labels" in linecache.getline(finding.site.file or "", finding.site.line or 0)


class Away(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return -gradient


def test_a_gradient_that_points_away_from_where_the_loss_falls_is_an_error() -> None:
    (finding,) = judged(Check(), tried(LossMinimum(), values(lambda p, t: F.mse_loss(Away.apply(p), t))))
    assert "points the wrong way" in finding.message


def focal(scores: Tensor, labels: Tensor) -> Tensor:
    log_chance = scores.log_softmax(1).gather(1, labels[:, None])
    return (-((1 - log_chance.exp()).detach() ** 2) * log_chance).mean()


def pinball(prediction: Tensor, target: Tensor) -> Tensor:
    gap = target - prediction
    return torch.maximum(0.9 * gap, -0.1 * gap).mean()


RIGHT = {
    "cross-entropy": lambda: classes(F.cross_entropy),
    "smoothed": lambda: classes(lambda s, t: F.cross_entropy(s, t, label_smoothing=0.2)),
    "weighted": lambda: classes(lambda s, t: F.cross_entropy(s, t, torch.tensor([0.1, 5.0, 1.0, 0.0]))),
    "nll": lambda: classes(F.nll_loss, nn.LogSoftmax(1)),
    "probabilities": lambda: classes(lambda p, t: -p.gather(1, t[:, None]).log().mean(), nn.Softmax(1)),
    "focal": lambda: classes(focal),
    "margin": lambda: classes(F.multi_margin_loss),
    "one-hot squares": lambda: classes(lambda s, t: F.mse_loss(s.softmax(1), F.one_hot(t, 4).float())),
    "squares": lambda: values(F.mse_loss),
    "rescaled target": lambda: values(lambda p, t: ((p - (t - 1.0) * 3) ** 2).mean()),
    "absolute": lambda: values(F.l1_loss),
    "huber": lambda: values(F.smooth_l1_loss),
    "quantile": lambda: values(pinball),
    "negative cosine": lambda: values(lambda p, t: -F.cosine_similarity(p, t).mean()),
    "relative": lambda: values(lambda p, t: ((p - t).abs() / t.abs().clamp(min=0.1)).mean()),
    "with a penalty": lambda: values(lambda p, t: F.mse_loss(p, t) + 0.01 * p.square().mean()),
    "binary": lambda: binary(F.binary_cross_entropy_with_logits),
    "binary chances": lambda: binary(F.binary_cross_entropy, nn.Sigmoid()),
    "dice": lambda: binary(lambda s, t: 1 - 2 * (s.sigmoid() * t).sum() / (s.sigmoid().sum() + t.sum())),
    "hinge": lambda: binary(lambda s, t: F.relu(1 - s * (2 * t - 1)).mean()),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(RIGHT))
def test_losses_that_are_lowest_at_the_target_pass(name: str) -> None:
    assert judged(Check(), tried(LossMinimum(), RIGHT[name]())) == []


@pytest.mark.parametrize("name", ["cnn", "wine", "regression", "segmentation", "gpt"])
def test_healthy_programs_pass(name: str) -> None:
    assert judged(Check(), tried(LossMinimum(), HEALTHY[name]())) == []


@pytest.mark.parametrize("name", ["two_towers", "vae", "tagger"])
def test_healthy_programs_whose_target_is_elsewhere_pass_or_are_not_judged(name: str) -> None:
    try:
        found = judged(Check(), tried(LossMinimum(), HEALTHY[name]()))
    except CannotJudge:
        found = []
    assert found == []


def test_rewards_are_not_judged() -> None:
    torch.manual_seed(0)
    policy = mlp(6, 4)

    def step(batch: Any) -> Tensor:
        states, actions, advantages = batch
        chosen = policy(states).log_softmax(1).gather(1, actions[:, None]).squeeze(1)
        return -(chosen * advantages).mean()

    data = (torch.randn(32, 6), torch.randint(0, 4, (32,)), torch.randn(32))
    with pytest.raises(CannotJudge, match=r"signed weights|form of a target"):
        tried(LossMinimum(), subject_of(policy, None, data, step=step))


def test_a_model_that_makes_its_own_loss_is_not_judged() -> None:
    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = mlp(6, 4)

        def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
            scores = self.inner(x)
            return scores, F.cross_entropy(scores, y)

    torch.manual_seed(0)
    model = Own()
    data = (torch.randn(32, 6), torch.randint(0, 4, (32,)))
    subject = subject_of(model, None, data, step=lambda batch: model(*batch)[1])
    with pytest.raises(CannotJudge, match=r"inside the model|form of a target"):
        tried(LossMinimum(), subject)
