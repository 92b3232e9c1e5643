"""Steps that a `GradScaler` skips, and when there are too many of them.

It tries scales from above: a few skipped steps at the start, and one now and then, are how it works. Once the
scale has come down to 1 it no longer multiplies anything, so non-finite gradients are not its doing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.optim import Optimizer

from clew.hooks.entry.user_line import user_line
from clew.hooks.steps.replay_inputs import ReplayInputs
from clew.measure.readable_tensors import readable
from clew.records.site import Line

# torch's documentation of `update`: "if the scale falls below 1, something is likely wrong".
EXHAUSTED = 1.0
MOST_IN_A_ROW = 20  # a millionth of the initial scale, for any initial scale
MOST_AT_THE_END = 8  # for a run that made no update at all: a 256th of the initial scale

Collapse = Callable[[Optimizer, Line, dict[str, Any]], None]


class Scaling:
    """Counts the steps skipped in a row, and reports when there are too many."""

    def __init__(self, inputs: ReplayInputs, step: Callable[[], int], collapsed: Collapse) -> None:
        self._inputs = inputs
        self._step = step
        self._collapsed = collapsed
        self._in_a_row = 0
        self._updates = False  # whether there was any update
        self._last: tuple[int, Optimizer, Line, float | None] | None = None

    def deciding(self, scaler: Any, optimizer: Optimizer, found: dict[str, Any]) -> None:
        """The scaler is about to read its flags, which waits for the device, so now we may read them too."""
        flags = found.get("found_inf_per_device", {}).values()
        if any(flag.item() for flag in flags):
            self.skipped(getattr(scaler, "_scale", None), optimizer, user_line())
        else:
            self._updated()

    def skipped(self, scale: Any, optimizer: Optimizer, line: Line) -> None:
        """An update is skipped because of its gradients, which still exist."""
        step = self._step()
        if step > (self._last[0] if self._last else 0) + 1:
            self._updated()  # by a fused optimizer, which is reported only when it skips
        self._in_a_row += 1
        self._last = (step, optimizer, line, _at_hand(scale))
        exhausted = self._last[3] is not None and self._last[3] <= EXHAUSTED
        if exhausted or self._in_a_row >= MOST_IN_A_ROW:
            self._report()
        self._inputs.stepped()  # the next backward does not accumulate

    def _updated(self) -> None:
        self._in_a_row = 0
        self._updates = True

    def finish(self) -> None:
        """The run is over; it may have been too short for the scale to come down."""
        if not self._updates and self._in_a_row >= MOST_AT_THE_END:
            self._report()

    def _report(self) -> None:
        if self._last is not None:
            _, optimizer, line, scale = self._last
            details = {"kind": _kind(optimizer), "skipped": self._in_a_row, "scale": scale}
            self._collapsed(optimizer, line, details)


def fused_scale(optimizer: Optimizer) -> Any:
    """The scale, if a scaler has left it to a fused optimizer to skip this step; otherwise None."""
    skips = getattr(optimizer, "found_inf", None) is not None
    return getattr(optimizer, "grad_scale", 1.0) if skips else None


def _kind(optimizer: Optimizer) -> str:
    gradients = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
    found = [v for g in gradients if (v := readable(g)) is not None and v.is_floating_point()]
    return "nan" if any(bool(v.isnan().any()) for v in found) else "inf"


def _at_hand(scale: Any) -> float | None:
    """The scale, if it can be read without waiting for the device."""
    return float(scale) if isinstance(scale, Tensor) and scale.is_cpu else None
