"""Samples of a batch: content hashes, labels, and which samples or features are constant.

Reads only tensors in host memory: reading an accelerator would make the program wait.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from clew.measure.readable_tensors import PLAIN, has_values

MOST_SAMPLES = 1024  # samples of a batch that are read
ELEMENTS = 512  # evenly spaced elements of a sample that are read
_WORDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}

Hashes = npt.NDArray[np.uint64]


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
