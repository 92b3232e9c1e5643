from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from subjects import HEALTHY, batches, diabetes, digits, judged, mlp, tried, wine
from torch import Tensor, nn

from clew.checks.exp.cannot_overfit_batch import CannotOverfitBatch as Check
from clew.labs.experiments.learning.overfit_batch import OverfitBatch
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge, Clock, OutOfTime
from clew.labs.snapshot.users_step.subject_from_call import subject_of
from clew.records.finding import Severity


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_program_memorises_a_few_samples(name: str) -> None:
    result = tried(OverfitBatch(), HEALTHY[name]())
    assert judged(Check(), result) == []
    assert result.data.attempts[-1].end < result.data.start


class Detached(nn.Module):
    """The features never learn, and the head sees none of them."""

    def __init__(self) -> None:
        super().__init__()
        self.features, self.head = mlp(13, 8), nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.features(x).detach() * 0)


def bounded() -> Subject:
    torch.manual_seed(0)
    model = nn.Sequential(mlp(10, 1), nn.Sigmoid())
    features, target = diabetes()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    return subject_of(model, F.mse_loss, batches(features, target * 100 + 500), optimizer)


def cut_off() -> Subject:
    torch.manual_seed(0)
    model = Detached()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return subject_of(model, F.cross_entropy, batches(*wine(), size=16), optimizer)


@pytest.mark.parametrize("make", [bounded, cut_off])
def test_a_network_that_cannot_answer_is_an_error_with_its_curve(make: object) -> None:
    (found,) = judged(Check(), tried(OverfitBatch(), make()))  # type: ignore[operator]
    assert found.severity is Severity.ERROR
    assert "can't memorise 8 samples" in found.message
    assert found.evidence[0].values
    assert any("Adam, lr 0.01" in e.text for e in found.evidence)  # tried before it was blamed


def test_a_learning_rate_that_is_far_too_low_is_not_called_a_network_that_cannot_learn() -> None:
    torch.manual_seed(0)
    model = mlp(13, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-7)
    subject = subject_of(model, F.cross_entropy, batches(*wine(), size=16), optimizer)
    assert judged(Check(), tried(OverfitBatch(), subject)) == []


def test_samples_of_a_single_class_are_no_fault() -> None:
    features, labels = digits()
    kept = labels == 3
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), mlp(64, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    subject = subject_of(model, F.cross_entropy, batches(features[kept], labels[kept]), optimizer)
    assert judged(Check(), tried(OverfitBatch(), subject)) == []


def test_label_smoothing_does_not_count_as_failure_though_its_loss_stays_high() -> None:
    torch.manual_seed(0)
    model = mlp(13, 3)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    loss = nn.CrossEntropyLoss(label_smoothing=0.3)
    result = tried(OverfitBatch(), subject_of(model, loss, batches(*wine(), size=16), optimizer))
    assert result.data.attempts[-1].floor > 0.5
    assert judged(Check(), result) == []


def test_a_negative_loss_without_floor_that_falls_is_healthy() -> None:
    torch.manual_seed(0)
    model = mlp(10, 4)

    def step(pair: tuple[Tensor, Tensor]) -> Tensor:
        return -F.cosine_similarity(model(pair[0]), pair[1].expand(-1, 4)).mean()

    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    subject = subject_of(model, None, batches(*diabetes()), optimizer, step=step)
    assert judged(Check(), tried(OverfitBatch(), subject)) == []


def test_the_program_is_as_it_was_and_a_second_time_gives_the_same() -> None:
    subject = HEALTHY["cnn"]()
    before = [p.clone() for p in subject.parameters()]
    rng = torch.get_rng_state()
    first = tried(OverfitBatch(), subject).data
    assert all(torch.equal(a, b) for a, b in zip(before, subject.parameters(), strict=True))
    assert torch.equal(rng, torch.get_rng_state())
    assert tried(OverfitBatch(), subject).data == first


def test_two_optimizers_in_turn_are_not_judged() -> None:
    subject = HEALTHY["wine"]()
    subject.optimizers.append(subject.optimizers[0])
    with pytest.raises(CannotJudge, match="several optimizers"):
        tried(OverfitBatch(), subject)


def test_it_stops_when_its_time_is_up() -> None:
    ticks = iter(range(1000))
    clock = Clock(20, now=lambda: next(ticks))
    with pytest.raises(OutOfTime):
        OverfitBatch().run(bounded(), clock)
