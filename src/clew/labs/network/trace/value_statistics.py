"""Median, mean, spread and range of a tensor's values, with no effect on the running program."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

from clew.records.network import Statistics

LARGE = 1e140  # squares of what is larger, summed up, leave the range of float64


def statistics_of(tensor: Tensor) -> Statistics | None:
    """None for what has no values or no numbers."""
    with _disable_current_modes(), torch.no_grad():
        if tensor.is_complex() or tensor.numel() == 0:
            return None
        values = tensor.detach().flatten().to(torch.float64)
        finite = values[torch.isfinite(values)]
        lost = values.numel() - finite.numel()
        if finite.numel() == 0:
            nan = float("nan")
            return Statistics(nan, nan, nan, nan, nan, lost)
        low, high = map(float, finite.aminmax())
        scale = max(abs(low), abs(high), 1.0)
        if scale > LARGE:
            finite = finite / scale
        else:
            scale = 1.0
        return Statistics(
            median=float(finite.median()) * scale,
            mean=float(finite.mean()) * scale,
            std=float(finite.std(correction=0)) * scale,
            min=low,
            max=high,
            nonfinite=lost,
        )
