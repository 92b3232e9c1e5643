"""How low a loss could be, with the input and without it."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from subjects import mlp
from torch import Tensor

from clew.labs.experiments.tools.loss_bounds import LossRange, MeasuredLoss, measured
from clew.labs.snapshot.users_step.subject_from_call import subject_of

INPUTS = torch.randn(8, 4, generator=torch.Generator().manual_seed(0))
LABELS = torch.tensor([0, 0, 0, 0, 0, 0, 1, 1])  # a quarter are of the second class
YES_OR_NO = LABELS.float().unsqueeze(1)
NUMBERS = torch.tensor([0.0, 0.0, 0.0, 0.0, 2.0, 2.0, 2.0, 2.0]).unsqueeze(1)
ENTROPY = -(0.75 * math.log(0.75) + 0.25 * math.log(0.25))


def measure(loss: Callable[..., Tensor], target: Tensor, outputs: int) -> MeasuredLoss:
    torch.manual_seed(0)
    subject = subject_of(mlp(4, outputs), loss, (INPUTS, target))
    with subject.snapshot() as snapshot:
        return measured(snapshot, subject.batch())


@pytest.mark.parametrize(
    ("loss", "target", "outputs", "floor", "constant"),
    [
        (F.cross_entropy, LABELS, 2, 0.0, ENTROPY),
        (F.binary_cross_entropy_with_logits, YES_OR_NO, 1, 0.0, ENTROPY),
        (F.mse_loss, NUMBERS, 1, 0.0, 1.0),  # the variance
        (F.l1_loss, NUMBERS, 1, 0.0, 1.0),  # the distance to the median
    ],
)
def test_the_bounds_are_those_of_the_best_and_the_best_constant_prediction(
    loss: Callable[..., Tensor], target: Tensor, outputs: int, floor: float, constant: float
) -> None:
    found = measure(loss, target, outputs)
    assert found.known == pytest.approx(found.loss)
    assert found.floor == pytest.approx(floor, abs=1e-5)
    assert found.constant == pytest.approx(constant, abs=1e-4)


def test_label_smoothing_raises_the_floor() -> None:
    found = measure(lambda x, y: F.cross_entropy(x, y, label_smoothing=0.2), LABELS, 2)
    assert found.floor == pytest.approx(-(0.9 * math.log(0.9) + 0.1 * math.log(0.1)), abs=1e-5)


def test_a_loss_without_a_loss_function_of_torch_has_no_bounds() -> None:
    found = measure(lambda x, y: (x[:, 0] - y).abs().mean(), LABELS, 2)
    assert (found.known, found.floor, found.constant) == (None, None, None)
    assert LossRange.between(found, found) == LossRange(None, None)


def test_the_bounds_are_scaled_as_the_loss_is() -> None:
    found = measure(lambda x, y: 10 * F.cross_entropy(x, y), LABELS, 2)
    where = LossRange.between(found, found)
    assert where.constant == pytest.approx(10 * ENTROPY, abs=1e-3)


def test_the_share_that_remains_is_of_the_way_from_the_constant_prediction() -> None:
    where = LossRange(floor=1.0, constant=3.0)
    assert where.remaining(start=5.0, end=2.0) == pytest.approx(0.5)
    assert where.at(0.5, start=5.0) == pytest.approx(2.0)
    assert where.remaining(start=5.0, end=math.inf) == math.inf
    assert LossRange(floor=1.0, constant=1.0).remaining(start=5.0, end=2.0) == pytest.approx(0.25)
