"""Loss calls that torch refuses: what they were given, kept before the script dies of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from clew.hooks.entry.sink import Sink
from clew.hooks.entry.user_line import user_line
from clew.measure.readable_tensors import has_values, shape_of
from clew.records.facts.loss_facts import LossFailedFact

MOST = 5  # failures told: a program may catch them and go on


class LossFailures:
    """Writes a `loss_failed` fact for an exception out of a loss function."""

    def __init__(self, sink: Sink, step: Callable[[], int]) -> None:
        self._sink = sink
        self._step = step
        self._told = 0

    def failed(self, kind: str, given: dict[str, Any], error: BaseException) -> None:
        if self._told >= MOST:
            return
        self._told += 1
        file, line = user_line()
        tensors = {**described("input", given.get("input")), **described("target", given.get("target"))}
        told = type(error).__name__, str(error)[:500]
        LossFailedFact(kind, file, line, *told, **tensors).write(self._sink, self._step())


def described(name: str, value: Any) -> dict[str, Any]:
    """Shape, type and range of a tensor; a device that has just failed is not asked for values."""
    if not isinstance(value, Tensor):
        return {}
    data: dict[str, Any] = {
        f"{name}_shape": tuple(shape_of(value)),
        f"{name}_dtype": str(value.dtype).removeprefix("torch."),
    }
    if value.is_cpu and has_values(value) and value.numel() and not value.is_complex():
        flat = value.detach()
        data[f"{name}_min"] = float(flat.min())
        data[f"{name}_max"] = float(flat.max())
        if value.is_floating_point():
            data[f"{name}_nan"] = bool(flat.isnan().any())
    return data
