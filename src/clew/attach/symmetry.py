"""Units that are copies of one another."""

from __future__ import annotations

import torch
from torch import Tensor

from clew.attach.late import on_host

TOLERANCE = 1e-3  # of the largest weight of a unit


def units_alike(weight: Tensor) -> bool | None:
    """Whether the units of a layer have identical weights, judged by four of them.

    None where there is nothing to compare, or where looking would make the host wait.
    """
    if weight.dim() < 2 or weight.shape[0] < 2 or weight.is_meta or not on_host(weight):
        return None
    if weight.layout is not torch.strided or not weight.numel() or not weight.is_floating_point():
        return None
    rows, count = weight.detach(), weight.shape[0]
    first = rows[0]
    # Sums in another order let even perfect copies drift apart by rounding.
    bound = TOLERANCE * float(first.abs().max())
    return all(float((rows[n] - first).abs().max()) <= bound for n in {1, count // 2, count - 1})
