"""Numbers that are still on an accelerator.

Reading one makes the host wait for the device. So they are left there, a step later fetched
together (one transfer for each device), and only then written. On the CPU nothing waits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from clew.measure.stats import resolve, tensor_stats, tensor_stats_async

Fill = Callable[[Tensor], None]


def on_host(tensor: Tensor) -> bool:
    return tensor.is_cpu


class Late:
    """Device tensors to be fetched, and what is to be done once they are there."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Tensor, Fill]] = []
        self._actions: list[Callable[[], None]] = []
        self._older: tuple[list[tuple[Tensor, Fill]], list[Callable[[], None]]] = ([], [])

    def add(self, values: Tensor, fill: Fill) -> None:
        """Hand `values` to `fill` as a host tensor, later."""
        self._waiting.append((values.detach().reshape(-1), fill))

    def then(self, action: Callable[[], None]) -> None:
        """Do this once everything added so far is there: at once, if nothing is waited for."""
        if self._waiting:
            self._actions.append(action)
        else:
            action()

    @property
    def is_waiting(self) -> bool:
        return bool(self._waiting)

    def end_of_step(self) -> None:
        """Fetch what the step before left: by now the device has it, and nobody waits."""
        if self._waiting or self._older[0]:
            older, self._older = self._older, (self._waiting, self._actions)
            self._waiting, self._actions = [], []
            _fetch(*older)

    def resolve(self) -> None:
        """Fetch everything now: the run is over."""
        self.end_of_step()
        self.end_of_step()

    def number(self, value: Any, write: Callable[[float], None]) -> None:
        """A single number, of the host or still on its way."""
        if not isinstance(value, Tensor):
            write(float(value))
        elif on_host(value):
            write(value.item())
        else:
            self.add(value, lambda values: write(float(values[0])))

    def stats(self, tensor: Tensor, row: Any) -> None:
        """Fill `row[:7]` with a tensor's statistics."""
        if on_host(tensor):
            tensor_stats(tensor, out=row[:7])
        else:
            self.add(tensor_stats_async(tensor), lambda values: void(resolve(values, row)))


def void(_: object) -> None:
    """For callbacks that want nothing back."""


def _fetch(waiting: list[tuple[Tensor, Fill]], actions: list[Callable[[], None]]) -> None:
    """One transfer for each device, then what waited for it."""
    for device in {values.device for values, _ in waiting}:
        here = [(values, fill) for values, fill in waiting if values.device == device]
        wide = torch.float32 if device.type == "mps" else torch.float64
        host = torch.cat([values.to(wide) for values, _ in here]).cpu()
        for part, (_, fill) in zip(host.split([v.numel() for v, _ in here]), here, strict=True):
            fill(part)
    for action in actions:
        action()
