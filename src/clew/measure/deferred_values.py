"""Deferred values: numbers that are still on an accelerator, fetched together a step later.

Reading one makes the host wait for the device. So they stay there, are fetched together one step later (one
transfer per device), and only then written. On the CPU nothing is deferred.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from clew.measure.stats import STAT_NAMES, resolve, tensor_stats, tensor_stats_async

Fill = Callable[[Tensor], None]


def on_host(tensor: Tensor) -> bool:
    return tensor.is_cpu


class Late:
    """Device tensors to fetch, and what to do once they have arrived."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Tensor, Fill]] = []
        self._actions: list[Callable[[], None]] = []
        self._older: tuple[list[tuple[Tensor, Fill]], list[Callable[[], None]]] = ([], [])

    def add(self, values: Tensor, fill: Fill) -> None:
        """Pass `values` to `fill` as a host tensor, later."""
        self._waiting.append((values.detach().reshape(-1), fill))

    def then(self, action: Callable[[], None]) -> None:
        """Call this once everything added so far has arrived: at once, if nothing is pending."""
        if self._waiting:
            self._actions.append(action)
        else:
            action()

    @property
    def is_waiting(self) -> bool:
        return bool(self._waiting)

    def end_of_step(self) -> None:
        """Fetch what the previous step left: by now the device has computed it, so nothing waits."""
        if self._waiting or self._older[0]:
            older, self._older = self._older, (self._waiting, self._actions)
            self._waiting, self._actions = [], []
            _fetch(*older)

    def resolve(self) -> None:
        """Fetch everything now: the run is over."""
        self.end_of_step()
        self.end_of_step()

    def number(self, value: Any, write: Callable[[float], None]) -> None:
        """Write a single number, which may be on the host or still on a device."""
        if not isinstance(value, Tensor):
            write(float(value))
        elif on_host(value):
            write(value.item())
        else:
            self.add(value, lambda values: write(float(values[0])))

    def row(self, values: Tensor) -> Any:
        """The values as a float64 array; NaN until they have arrived."""
        row = np.full(values.numel(), np.nan)
        if on_host(values):
            row[:] = values.numpy()
        else:
            self.add(values, partial(_fill, row))
        return row

    def stats(self, tensor: Tensor, row: Any) -> None:
        """Fill the beginning of a row with the statistics of a tensor."""
        if on_host(tensor):
            tensor_stats(tensor, out=row[: len(STAT_NAMES)])
        else:
            self.add(tensor_stats_async(tensor), lambda values: void(resolve(values, row)))


def _fill(row: Any, values: Tensor) -> None:
    row[:] = values.numpy()


def void(_: object) -> None:
    """For callbacks that return nothing."""


def _fetch(waiting: list[tuple[Tensor, Fill]], actions: list[Callable[[], None]]) -> None:
    """One transfer per device, then the actions that waited for it."""
    for device in {values.device for values, _ in waiting}:
        here = [(values, fill) for values, fill in waiting if values.device == device]
        wide = torch.float32 if device.type == "mps" else torch.float64
        host = torch.cat([values.to(wide) for values, _ in here]).cpu()
        for part, (_, fill) in zip(host.split([v.numel() for v, _ in here]), here, strict=True):
            fill(part)
    for action in actions:
        action()
