"""Cheap learners to compare with: linear and kernel ridge regression, and nearest neighbours.

All of them predict with weights that do not depend on the labels, so that one fit serves hundreds of
label permutations. Inputs are used as plain features, tokens as a bag of words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d

from clew.labs.snapshot.sample_pool import random_order
from clew.labs.snapshot.time_limit import CannotJudge
from clew.records.facts.data_experiment_facts import LearnerScore

MOST_FEATURES = 1024  # of an input; more are averaged or left out
BUCKETS = 512  # of words
FOLDS = 5
NEIGHBOURS = 10
STRENGTH = 0.3  # of the ridge, in units of the mean of the kernel's diagonal


def features(inputs: Sequence[Tensor]) -> Tensor:
    """(samples, features), standardised."""
    columns = [_features(t.detach().cpu()) for t in inputs]
    together = torch.cat(columns, 1)
    if not torch.isfinite(together).all():
        raise CannotJudge("some inputs are non-finite")
    centred = together - together.mean(0)
    spread = centred.std(0)
    return centred[:, spread > 1e-12] / spread[spread > 1e-12]


def _features(tensor: Tensor) -> Tensor:
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    if not tensor.is_floating_point() and tensor.dtype not in (torch.bool, torch.uint8):
        return _bag(tensor.reshape(len(tensor), -1).long())
    if tensor.dim() == 4 and tensor[0].numel() > MOST_FEATURES:
        tensor = adaptive_avg_pool2d(tensor.float(), 16)
    flat = tensor.reshape(len(tensor), -1).double()
    stride = -(-flat.shape[1] // MOST_FEATURES)
    return flat[:, ::stride]


def _bag(tokens: Tensor) -> Tensor:
    """How often each word occurs, and which words are first and last."""
    buckets = tokens % BUCKETS
    count = torch.zeros(len(tokens), BUCKETS, dtype=torch.double)
    count.scatter_add_(1, buckets, torch.ones_like(buckets, dtype=torch.double))
    if tokens.shape[1] < 3:
        return count
    ends = [torch.nn.functional.one_hot(buckets[:, at], BUCKETS).double() for at in (0, -1)]
    return torch.cat([count.sqrt(), *ends], 1)


@dataclass(frozen=True)
class Learner:
    """A matrix that turns labels into cross-validated predictions: row i does not use sample i's label."""

    name: str
    weights: Tensor  # (samples, samples)

    def predict(self, columns: Tensor) -> Tensor:
        """The prediction for every sample from the other folds; `columns` is (samples, …)."""
        return self.weights @ columns


def learners(data: Tensor) -> list[Learner]:
    """Fitted to the features; the labels come later."""
    if data.shape[1] == 0:
        raise CannotJudge("all inputs are the same")
    fold = random_order(len(data)) % FOLDS
    product = data @ data.T / data.shape[1]
    square = product.diagonal()
    distance = (square[:, None] + square[None] - 2 * product).clamp(min=0)
    typical = distance.flatten()[:: max(1, distance.numel() // 10007)].median().clamp(min=1e-12)
    bent = torch.exp(-distance / typical)
    return [
        Learner("linear", _ridge(product, fold)),
        Learner("kernel", _ridge(bent, fold)),
        Learner("neighbours", _nearest(distance, fold)),
    ]


def _ridge(kernel: Tensor, fold: Tensor) -> Tensor:
    weights = torch.zeros_like(kernel)
    for number in range(FOLDS):
        out, into = (fold == number).nonzero().flatten(), (fold != number).nonzero().flatten()
        inner = kernel[into][:, into]
        strength = STRENGTH * inner.diagonal().mean().clamp(min=1e-12)
        held = kernel[out][:, into]
        centred = inner + strength * torch.eye(len(into), dtype=kernel.dtype)
        made = torch.linalg.solve(centred, held.T).T
        # All learners predict the mean of the labels; the kernel predicts the deviation from it.
        made = made - made.sum(1, keepdim=True) / len(into) + 1 / len(into)
        weights[out[:, None], into[None]] = made
    return weights


def _nearest(distance: Tensor, fold: Tensor) -> Tensor:
    apart = distance.masked_fill(fold[:, None] == fold[None], torch.inf)
    count = min(NEIGHBOURS, int((fold != 0).sum()))
    near = apart.topk(count, largest=False).indices
    return torch.zeros_like(distance).scatter_(1, near, 1 / count)


def scores(fitted: Sequence[Learner], columns: Tensor, permutations: int) -> list[LearnerScore]:
    """Correlation of prediction and label, over all columns; the labels permuted for comparison."""
    generator = torch.Generator().manual_seed(0)
    orders = [torch.randperm(len(columns), generator=generator) for _ in range(permutations)]
    centred = columns - columns.mean(0)
    found = []
    for learner in fitted:
        real = _correlation(learner.predict(centred), centred)
        permuted = [_correlation(learner.predict(centred[order]), centred[order]) for order in orders]
        null = torch.tensor(permuted, dtype=torch.double)
        deviations = float((real - null.mean()) / null.std().clamp(min=1e-12))
        found.append(LearnerScore(learner.name, real, tuple(permuted), deviations))
    return found


def _correlation(predicted: Tensor, wanted: Tensor) -> float:
    predicted = predicted - predicted.mean(0)
    size = predicted.norm() * wanted.norm()
    return float((predicted * wanted).sum() / size.clamp(min=1e-30))


def accuracy(predicted: Tensor, values: Tensor) -> float:
    """Share of samples whose highest column is their class."""
    return float((predicted.argmax(1) == values).double().mean())
