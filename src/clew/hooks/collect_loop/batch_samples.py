"""Samples of a batch: content hashes, labels, what is constant, and whether labels depend on inputs.

Reads only tensors in host memory: reading an accelerator would make the program wait.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from clew.measure.readable_tensors import PLAIN, has_values
from clew.records.facts.loss_facts import LabelSignalFact

MOST_SAMPLES = 1024  # samples of a batch that are read
ELEMENTS = 512  # evenly spaced elements of a sample that are read
_WORDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}

Hashes = npt.NDArray[np.uint64]

MOST_JUDGED = 512  # samples kept; their distances are one matrix product
FEWEST_JUDGED = 200  # with fewer samples chance itself varies too much
FEATURES_JUDGED = 256  # evenly spaced features of each sample


def _weights() -> Hashes:
    """Odd 64-bit numbers without any pattern (splitmix64). The program's random generators are not used."""
    z = np.arange(1, 2 * ELEMENTS + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    odd: Hashes = (z ^ (z >> np.uint64(31))) | np.uint64(1)
    return odd


WEIGHTS = _weights()


def is_readable(tensor: Tensor) -> bool:
    """Whether this is an ordinary batch in host memory."""
    return (
        type(tensor) in PLAIN
        and tensor.is_cpu
        and has_values(tensor)
        and tensor.dim() > 0
        and tensor.numel() > 0
        and not tensor.is_complex()
        and tensor.element_size() in _WORDS
    )


def flattened(tensor: Tensor) -> Tensor:
    """One row per sample, with at most `2 * ELEMENTS` evenly spaced elements."""
    rows = tensor.detach()[:MOST_SAMPLES]
    rows = rows.reshape(rows.shape[0], -1)
    return rows[:, :: max(rows.shape[1] // ELEMENTS, 1)].contiguous()


def sample_hashes(rows: Tensor) -> Hashes:
    """A 64-bit hash of the content of every row."""
    words = rows if rows.dtype is not torch.bool else rows.to(torch.uint8)
    words = words.view(_WORDS[words.element_size()])
    numbers = words.numpy().astype(np.uint64)
    hashed: Hashes = (numbers * WEIGHTS[: numbers.shape[1]]).sum(axis=1, dtype=np.uint64)
    return hashed


def joint_hashes(tensors: list[Tensor]) -> Hashes | None:
    """A hash of every sample over all arguments of a model; None if they are not batched by sample."""
    if not tensors or not all(is_readable(t) and len(t) == len(tensors[0]) for t in tensors):
        return None
    parts = [sample_hashes(flattened(t)) * w for t, w in zip(tensors, WEIGHTS, strict=False)]
    hashed: Hashes = np.sum(parts, axis=0, dtype=np.uint64)
    return hashed


def is_constant(rows: Tensor) -> npt.NDArray[np.bool_]:
    """Which rows contain only one value."""
    same: npt.NDArray[np.bool_] = (rows == rows[:, :1]).all(1).numpy()
    return same


class Extent:
    """The lowest and highest value of every feature over all batches seen."""

    def __init__(self) -> None:
        self._low: Tensor | None = None
        self._high: Tensor | None = None
        self.samples = 0

    def add(self, rows: Tensor) -> None:
        low, high = rows.amin(0), rows.amax(0)
        if self._low is None or self._high is None or self._low.shape != low.shape:
            self._low, self._high, self.samples = low, high, 0
        self._low, self._high = torch.minimum(self._low, low), torch.maximum(self._high, high)
        self.samples += rows.shape[0]

    @property
    def constant(self) -> float:
        """Share of the features that never varied; NaN while there is nothing to compare."""
        if self._low is None or self._high is None or self.samples < 2:
            return float("nan")
        return float((self._low == self._high).float().mean())


def labels_of(target: Any) -> Tensor | None:
    """One label per sample, as int64: class indices, or zeros and ones in a column of floats."""
    if not isinstance(target, Tensor) or not is_readable(target):
        return None
    if target.numel() != target.shape[0]:
        return None
    labels = target.detach().reshape(-1)
    if labels.is_floating_point() and not bool(((labels == 0) | (labels == 1)).all()):
        return None
    return labels.to(torch.int64)


def predicted_labels(output: Any, samples: int) -> Tensor | None:
    """The labels that a classifier's output predicts: the largest of its scores, or the side of a single one.

    A single column counts as logits if any value is negative or above one, otherwise as probabilities.
    """
    if not isinstance(output, Tensor) or not is_readable(output) or output.shape[0] != samples:
        return None
    scores = output.detach()
    if scores.dim() == 2 and scores.shape[1] > 1:
        return scores.argmax(1)
    if scores.numel() != samples or not scores.is_floating_point():
        return None
    scores = scores.reshape(-1)
    probable = bool(((scores >= 0) & (scores <= 1)).all())
    return (scores > (0.5 if probable else 0.0)).to(torch.int64)


class LabelSignal:
    """Collects inputs with their labels until there are enough, then judges once whether they are related.

    Two cheap tests, neither of which needs a model: how far apart the class means are, and how often a
    sample's nearest neighbour has the same label. Labels that were shuffled relative to their inputs give
    chance in both.
    """

    def __init__(self) -> None:
        self._inputs: list[Tensor] = []
        self._labels: list[Tensor] = []
        self.samples = 0
        self.done = False

    def add(self, rows: Tensor, labels: Tensor) -> None:
        """Add samples with their labels; copies them, since the program may change them later."""
        if self.done or not rows.is_floating_point():
            return
        thin = rows[:, :: max(rows.shape[1] // FEATURES_JUDGED, 1)].float()[: MOST_JUDGED - self.samples]
        if self._inputs and self._inputs[0].shape[1] != thin.shape[1]:
            self._inputs, self._labels, self.samples = [], [], 0
        self._inputs.append(thin.clone())
        self._labels.append(labels[: len(thin)].clone())
        self.samples += len(thin)

    @property
    def is_full(self) -> bool:
        return not self.done and self.samples >= MOST_JUDGED

    def judge(self) -> LabelSignalFact | None:
        """The `label_signal` fact, or None if there are too few samples of too few classes."""
        self.done = True
        if self.samples < FEWEST_JUDGED:
            return None
        inputs, labels = torch.cat(self._inputs), torch.cat(self._labels)
        self._inputs, self._labels = [], []
        _, labels = labels.unique(return_inverse=True)
        if int(labels.max()) < 1 or not bool(torch.isfinite(inputs).all()):
            return None
        inputs, labels = distinct(standardised(inputs), labels)
        if len(inputs) < FEWEST_JUDGED:
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
