"""Units of a layer that are copies of one another."""

from __future__ import annotations

from torch import Tensor

TOLERANCE = 1e-3  # of the largest weight of a unit


def rows_alike(weight: Tensor) -> bool:
    """Whether the rows of a weight with two of them or more are the same, judged by four of them."""
    rows, count = weight.detach(), weight.shape[0]
    first = rows[0]
    # Sums in another order let even perfect copies drift apart by rounding.
    bound = TOLERANCE * float(first.abs().max())
    return all(float((rows[n] - first).abs().max()) <= bound for n in {1, count // 2, count - 1})
