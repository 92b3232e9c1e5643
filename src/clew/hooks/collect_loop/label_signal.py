"""Label signal: whether the labels depend on the inputs, from two cheap tests on the first samples.

Neither needs a model: how far apart the class means are, and how often a sample's nearest neighbour has the
same label. Labels that were shuffled relative to their inputs give chance in both.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from clew.records.facts.loss_facts import LabelSignalFact

MOST = 512  # samples kept; their distances are one matrix product
FEWEST = 200  # with fewer samples chance itself varies too much
FEATURES = 256  # evenly spaced features of each sample


class LabelSignal:
    """Collects inputs with their labels until there are enough, then judges them once."""

    def __init__(self) -> None:
        self._inputs: list[Tensor] = []
        self._labels: list[Tensor] = []
        self.samples = 0
        self.done = False

    def add(self, rows: Tensor, labels: Tensor) -> None:
        """Add samples with their labels; copies them, since the program may change them later."""
        if self.done or not rows.is_floating_point():
            return
        thin = rows[:, :: max(rows.shape[1] // FEATURES, 1)].float()[: MOST - self.samples]
        if self._inputs and self._inputs[0].shape[1] != thin.shape[1]:
            self._inputs, self._labels, self.samples = [], [], 0
        self._inputs.append(thin.clone())
        self._labels.append(labels[: len(thin)].clone())
        self.samples += len(thin)

    @property
    def is_full(self) -> bool:
        return not self.done and self.samples >= MOST

    def judge(self) -> LabelSignalFact | None:
        """The `label_signal` fact, or None if there are too few samples of too few classes."""
        self.done = True
        if self.samples < FEWEST:
            return None
        inputs, labels = torch.cat(self._inputs), torch.cat(self._labels)
        self._inputs, self._labels = [], []
        _, labels = labels.unique(return_inverse=True)
        if int(labels.max()) < 1 or not bool(torch.isfinite(inputs).all()):
            return None
        inputs, labels = distinct(standardised(inputs), labels)
        if len(inputs) < FEWEST:
            return None
        share, chance = neighbour_agreement(inputs, labels)
        spread = math.sqrt(max(chance * (1 - chance), 1e-12) / len(inputs))
        return LabelSignalFact(
            samples=len(inputs),
            separation=class_separation(inputs, labels),
            neighbours=share,
            chance=chance,
            deviations=(share - chance) / spread,
        )


def standardised(inputs: Tensor) -> Tensor:
    spread = inputs.std(0)
    return ((inputs - inputs.mean(0)) / spread)[:, spread > 0]


def distinct(inputs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Drop copies of the same sample: in a second epoch each would be its own neighbour."""
    rounded = (inputs * 1e4).round().sum(1) if inputs.shape[1] else torch.zeros(len(inputs))
    _, inverse = rounded.unique(return_inverse=True)
    first = torch.full((int(inverse.max()) + 1,), len(inputs), dtype=torch.int64)
    first.scatter_reduce_(0, inverse, torch.arange(len(inputs)), "amin")
    keep = first.sort().values
    return inputs[keep], labels[keep]


def class_separation(inputs: Tensor, labels: Tensor) -> float:
    """Variance between the classes relative to chance, averaged over the features: 1 without a signal."""
    classes = int(labels.max()) + 1
    if inputs.shape[1] == 0 or classes < 2:
        return 1.0
    counts = torch.bincount(labels, minlength=classes).float()
    sums = torch.zeros(classes, inputs.shape[1]).index_add_(0, labels, inputs)
    present = counts > 0
    between = (sums[present] ** 2 / counts[present, None]).sum(0)  # the features have mean zero
    total = (inputs**2).sum(0)
    expected = (int(present.sum()) - 1) / (len(inputs) - 1)
    return float((between / total.clamp(min=1e-12)).mean()) / expected


def neighbour_agreement(inputs: Tensor, labels: Tensor) -> tuple[float, float]:
    """Share of samples whose nearest neighbour has the same label, and that share by chance."""
    distances = (inputs**2).sum(1)[None, :] - 2 * inputs @ inputs.T
    distances.fill_diagonal_(float("inf"))
    nearest = labels[distances.argmin(1)]
    shares = torch.bincount(labels).float() / len(labels)
    return float((nearest == labels).float().mean()), float((shares**2).sum())
