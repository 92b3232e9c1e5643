from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from subjects import (
    HEALTHY,
    annotators,
    batches,
    diabetes,
    judged,
    mlp,
    segmentation,
    tagger,
    tried,
    vae,
    wine,
)
from torch import Tensor, nn

from clew.checks.exp.toy_task_failed import ToyTaskFailed as Check
from clew.labs.experiments.learning.toy_tasks import TASKS, ToyLadder, target_of, values_of
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge
from clew.labs.snapshot.users_step.subject_from_call import subject_of
from clew.records.finding import Severity


@pytest.mark.parametrize("name", ["cnn", "wine", "regression", "tagger", "gpt", "segmentation"])
def test_a_healthy_program_climbs_all_rungs(name: str) -> None:
    result = tried(ToyLadder(), HEALTHY[name]())
    assert judged(Check(), result) == []
    assert len(result.data.rungs) >= 2
    assert all(rung.taken for rung in result.data.rungs[:2])


def test_what_was_learned_without_dropout_is_looked_at_without_it() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(10, 64), nn.Dropout(0.8), nn.Tanh(), nn.Linear(64, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    result = tried(ToyLadder(), subject_of(model, F.mse_loss, batches(*diabetes()), optimizer))
    rungs = result.data.rungs
    assert all(rung.taken for rung in rungs[:2])
    assert model[1].p == 0.8


class Heading(nn.Module):
    """A direction, in radians."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = mlp(10, 1)

    def forward(self, x: Tensor) -> Tensor:
        return torch.sigmoid(self.layers(x)) * 2 * math.pi


def heading(unit: float) -> Subject:
    torch.manual_seed(0)
    model = Heading()
    features, target = diabetes()
    angle = torch.sigmoid(target) * 2 * math.pi * unit
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    return subject_of(model, F.mse_loss, batches(features, angle), optimizer)


def test_an_output_that_cannot_take_the_value_fails_at_the_constant() -> None:
    (found,) = judged(Check(), tried(ToyLadder(), heading(180 / math.pi)))
    assert found.severity is Severity.ERROR
    assert "give the same answer for every sample" in found.message
    assert judged(Check(), tried(ToyLadder(), heading(1.0))) == []


class Blind(nn.Module):
    """The features are averaged over the batch."""

    def __init__(self) -> None:
        super().__init__()
        self.layers, self.head = mlp(13, 8), nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.layers(x)
        return self.head(hidden.mean(0, keepdim=True).expand_as(hidden))


def test_an_input_that_does_not_reach_the_output_fails_at_two_samples() -> None:
    torch.manual_seed(0)
    model = Blind()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    result = tried(ToyLadder(), subject_of(model, F.cross_entropy, batches(*wine(), size=16), optimizer))
    assert [rung.taken for rung in result.data.rungs] == [True, False]
    (found,) = judged(Check(), result)
    assert "tell two samples apart" in found.message
    assert any("give the same answer for every sample: learned" in e.text for e in found.evidence)


def test_an_autoencoder_has_no_target_to_replace() -> None:
    with pytest.raises(CannotJudge):
        tried(ToyLadder(), vae())


def test_toy_targets_keep_type_shape_and_what_is_not_asked_for() -> None:
    for subject in (tagger(), segmentation(), HEALTHY["regression"](), HEALTHY["cnn"]()):
        batch = subject.batch()
        real = target_of(batch)
        values = values_of(real)
        for task in TASKS.values():
            try:
                toy = target_of(task(batch, values))
            except CannotJudge:
                continue
            assert toy.dtype == real.dtype
            assert toy.shape[1:] == real.shape[1:]
            asked = toy[toy >= 0] if not toy.is_floating_point() else toy
            assert set(asked.unique().tolist()) <= {
                v.to(real.dtype).item() for v in (values.usual, values.other)
            }
            if len(toy) == len(real) and not real.is_floating_point():
                assert torch.equal(toy < 0, real < 0)


@pytest.mark.parametrize("by_hand", [False, True])
def test_toy_targets_that_are_vectors_are_two_of_the_real_ones(by_hand: bool) -> None:
    subject = annotators(by_hand)
    batch = subject.batch()
    real = {tuple(row) for row in target_of(batch).tolist()}
    for task in TASKS.values():
        toy = {tuple(row) for row in target_of(task(batch, values_of(target_of(batch)))).tolist()}
        assert toy <= real
        assert len(toy) == 2 - (task is TASKS["constant"])
    assert judged(Check(), tried(ToyLadder(), subject)) == []


def test_vectors_that_are_all_the_same_offer_no_toy() -> None:
    with pytest.raises(CannotJudge, match="the same"):
        values_of(torch.ones(8, 3))
    with pytest.raises(CannotJudge, match="finite"):
        values_of(torch.full((8, 3), math.nan))
