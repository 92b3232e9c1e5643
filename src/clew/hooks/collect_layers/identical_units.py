"""Units that are copies of one another."""

from __future__ import annotations

from torch import Tensor

from clew.hooks.collect_layers.identical_rows import rows_alike
from clew.measure.deferred_values import on_host
from clew.measure.readable_tensors import has_values


def units_alike(weight: Tensor) -> bool | None:
    """Whether the units of a layer have identical weights, judged by four of them.

    None where there is nothing to compare, or where looking would make the host wait.
    """
    if weight.dim() < 2 or not on_host(weight) or not has_values(weight) or weight.shape[0] < 2:
        return None
    if not weight.numel() or not weight.is_floating_point():
        return None
    return rows_alike(weight)
