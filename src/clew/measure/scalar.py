"""The value of a one-element tensor, if it can be read without waiting; used before every backward."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from clew.measure import stats

_natives = stats.KERNEL.natives if stats.KERNEL is not None else None
_read = _natives.function("number") if _natives is not None else None


def number(value: Any) -> float | None:
    """The number in a plain tensor in host memory; None for anything else."""
    if type(value) is not Tensor or value.is_neg():  # the memory does not show that a view is negated
        return None
    found: float | None = _read(value) if _read is not None else None
    if found is None and value.is_cpu and value.numel() == 1:
        found = float(value.item())
    return found
