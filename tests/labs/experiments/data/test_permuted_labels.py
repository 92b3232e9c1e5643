"""Inputs that predict their labels, and inputs that do not."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from subjects import HEALTHY, digits, judged, mlp, tried
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from clew.checks.exp.no_signal import NoSignal as Check
from clew.labs.experiments.data.permuted_labels import PermutedLabels
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge
from clew.labs.snapshot.users_step.subject_from_call import subject_of


def program(x: Tensor, y: Tensor, loss: object = F.cross_entropy, outputs: int = 10) -> Subject:
    torch.manual_seed(0)
    model = mlp(x.shape[1], outputs, 128)
    loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
    return subject_of(model, loss, loader, torch.optim.Adam(model.parameters(), 3e-3))  # type: ignore[arg-type]


def pixels() -> tuple[Tensor, Tensor]:
    x, y = digits()
    return x.flatten(1)[:800], y[:800]


def other_order(y: Tensor) -> Tensor:
    return y[torch.randperm(len(y), generator=torch.Generator().manual_seed(1))]


def test_labels_shuffled_apart_leave_no_signal() -> None:
    x, y = pixels()
    (finding,) = judged(Check(), tried(PermutedLabels(), program(x, other_order(y))))
    assert finding.confidence == "possible"
    assert "800 samples" in finding.message


def test_digits_have_signal() -> None:
    result = tried(PermutedLabels(), program(*pixels()))
    assert judged(Check(), result) == []
    assert result.data.accuracy > 0.9 > 0.2 > result.data.chance
    assert result.data.model is None


@pytest.mark.parametrize("real", [True, False])
def test_regression_is_judged_too(real: bool) -> None:
    x, _ = pixels()
    y = torch.sin(x[:, 20:24].sum(1, keepdim=True)) + 0.5 * torch.randn(800, 1)
    subject = program(x, y if real else other_order(y), F.mse_loss, 1)
    assert (judged(Check(), tried(PermutedLabels(), subject)) == []) is real


@pytest.mark.parametrize("real", [True, False])
def test_tags_are_judged_too(real: bool) -> None:
    x, _ = pixels()
    y = (x[:, 20:25] > x[:, 30:35]).float()
    loss = F.binary_cross_entropy_with_logits
    subject = program(x, y if real else other_order(y), loss, 5)
    assert (judged(Check(), tried(PermutedLabels(), subject)) == []) is real


def test_a_weak_signal_counts() -> None:
    x, _ = pixels()
    y = (x[:, 28] + 2.0 * torch.randn(800, generator=torch.Generator().manual_seed(3)) > 0).long()
    assert judged(Check(), tried(PermutedLabels(), program(x, y, outputs=2))) == []


def test_texts_are_taken_as_bags_of_words() -> None:
    torch.manual_seed(0)
    topic = torch.randint(0, 3, (300,))
    words = torch.where(
        torch.rand(300, 10) < 0.5,
        topic.unsqueeze(1) * 20 + torch.randint(0, 20, (300, 10)),
        torch.randint(0, 60, (300, 10)),
    )
    model = nn.Sequential(nn.EmbeddingBag(60, 16), nn.Linear(16, 3))
    loader = DataLoader(TensorDataset(words, topic), batch_size=25, shuffle=True)
    subject = subject_of(model, F.cross_entropy, loader, torch.optim.Adam(model.parameters(), 0.02))
    assert tried(PermutedLabels(), subject).data.accuracy > 0.7


def test_a_model_too_slow_to_learn_anything_leaves_it_open() -> None:
    x, y = pixels()
    subject = program(x, other_order(y))
    subject.optimizers[0].param_groups[0]["lr"] = 1e-7
    assert judged(Check(), tried(PermutedLabels(), subject)) == []


def test_few_samples_can_not_be_judged() -> None:
    x, y = pixels()
    with pytest.raises(CannotJudge, match="only 60 samples"):
        tried(PermutedLabels(), program(x[:60], y[:60]))


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_programs_pass_or_say_what_is_missing(name: str) -> None:
    if name in ("cnn", "regression"):
        assert judged(Check(), tried(PermutedLabels(), HEALTHY[name]())) == []
    else:
        with pytest.raises(CannotJudge):
            tried(PermutedLabels(), HEALTHY[name]())
