"""Identical units: units of a layer whose weights are copies of one another."""

from __future__ import annotations

from torch import Tensor

from clew.measure.deferred_values import on_host
from clew.measure.readable_tensors import has_values

TOLERANCE = 1e-3  # of the largest weight of a unit


def units_alike(weight: Tensor) -> bool | None:
    """Whether the units of a layer have identical weights, based on four of them.

    None if there is nothing to compare, or if reading the weights would make the host wait.
    """
    if weight.dim() < 2 or not on_host(weight) or not has_values(weight) or weight.shape[0] < 2:
        return None
    if not weight.numel() or not weight.is_floating_point():
        return None
    return rows_alike(weight)


def rows_alike(weight: Tensor) -> bool:
    """Whether the rows of a weight with at least two rows are the same, based on four of them."""
    rows, count = weight.detach(), weight.shape[0]
    first = rows[0]
    # Sums in a different order let even perfect copies drift apart by rounding.
    bound = TOLERANCE * float(first.abs().max())
    return all(float((rows[n] - first).abs().max()) <= bound for n in {1, count // 2, count - 1})
