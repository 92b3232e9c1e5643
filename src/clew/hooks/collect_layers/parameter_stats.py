"""Parameter statistics around a sampled update: gradients, weights, and what changed."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from torch import Tensor

from clew.hooks.collect_layers.layer_histograms import Histograms
from clew.hooks.collect_layers.step_rows import Named, StepMatrix
from clew.hooks.collect_layers.trained_models import ParameterName
from clew.hooks.entry.sink import Sink
from clew.measure.deferred_values import Late, on_host
from clew.measure.gradient_norm import Addresses
from clew.measure.readable_tensors import has_values, stored_values
from clew.measure.stats import STAT_NAMES
from clew.records import signals

_INF, _NAN = math.inf, math.nan
_NORM, _NONFINITE, _RATIO = STAT_NAMES.index("norm"), STAT_NAMES.index("nonfinite"), len(STAT_NAMES)


class ParameterStats:
    """Gradients and weights before a sampled update, and what the update changed."""

    BLOCKS = 256  # evenly spaced pieces of a parameter that are kept to measure the change
    BLOCK = 64  # elements of each: a few cache lines, so that copying them is cheap

    def __init__(self, sink: Sink, late: Late, histograms: Histograms) -> None:
        self._late = late
        self._histograms = histograms
        self._gradients = StepMatrix(sink, late, signals.GRADIENT)
        self._weights = StepMatrix(sink, late, signals.WEIGHT)
        self._updates = StepMatrix(sink, late, signals.UPDATE, signals.UPDATE_RATIO)
        self._everything = True
        self._before: list[tuple[Tensor, ParameterName, Tensor, float]] = []
        self._measured = -1  # the last step whose weights were measured
        self._bad_since: dict[ParameterName, int] = {}  # first measured step at which these were not finite

    def prepare(self, everything: bool) -> None:
        """Set what the step that begins now must measure."""
        self._everything = everything
        for rows in (self._gradients, self._weights, self._updates):
            rows.take_histograms(everything)

    def before_step(self, named: Named, at: Addresses) -> None:
        """Measure weights, and keep a sample of each if the change will be measured, too."""
        self._before = []
        together = self._weights.measure_together(named, at)
        if together is not None and not self._everything and not self._histograms.wanted:
            return
        for parameter, name in named:
            value = parameter.detach()
            if not has_values(value):
                continue
            if together is None:
                self._weights.measure(self._weights.slot(name, name.site), value)
            if self._histograms.wanted:
                self._histograms.seen("weight", name, name.site, value)
            if not self._everything:
                continue
            before = thinned(value, self.BLOCKS, self.BLOCK).clone()
            self._before.append((parameter, name, before, value.numel() / max(before.numel(), 1)))

    def gradients(self, named: Named, at: Addresses) -> float | None:
        """Measure the optimizer's gradients. Returns their total norm, if all are finite and readable now."""
        together = self._gradients.measure_together(named, at)
        if together is not None and not self._histograms.wanted:
            rows = self._gradients.values[together.numbers]
            return None if rows[:, _NONFINITE].any() else _root(float(np.square(rows[:, _NORM]).sum()))
        square = 0.0
        for parameter, name in named:
            gradient = parameter.grad
            if gradient is None:
                continue
            dense = stored_values(gradient)
            if dense is None:
                square = _NAN
                continue
            slot = self._gradients.slot(name, name.site)
            if together is None:
                self._gradients.measure(slot, dense)
            if self._histograms.wanted:
                self._histograms.seen("gradient", name, name.site, dense)
            row = self._gradients.values[slot]
            square += row[_NORM] ** 2 if on_host(dense) and row[_NONFINITE] == 0 else _NAN
        return _root(square)

    def after_step(self) -> None:
        """Measure what the optimizer changed."""
        for parameter, name, before, scale in self._before:
            change = thinned(parameter.detach(), self.BLOCKS, self.BLOCK) - before
            slot = self._updates.slot(name, name.site)
            self._updates.measure(slot, change)
            weight = self._weights.values[self._weights.slot(name, name.site)]
            self._late.then(partial(_relate, self._updates.values[slot], weight, scale))
        self._before = []

    def commit(self, step: int) -> None:
        self._measured = step
        self._late.then(partial(self._note_bad, step))
        for rows in (self._gradients, self._weights, self._updates):
            rows.commit(step)

    def seen(self, name: ParameterName) -> tuple[int, bool] | None:
        """Whether a parameter was finite when last measured before an update, and at which step.

        If it was not finite, the step is the first at which it was not.
        """
        if self._measured < 0 or name not in self._weights:
            return None
        since = self._bad_since.get(name)
        return (self._measured, True) if since is None else (since, False)

    def _note_bad(self, step: int) -> None:
        bad = self._weights.sites_above_zero(_NONFINITE)
        self._bad_since = {name: self._bad_since.get(name, step) for name in bad}


def _root(square: float) -> float | None:
    """The norm of finite gradients; None if the sum of their squares does not give it."""
    return math.sqrt(square) if square - square == 0.0 else None


def _relate(change: Any, weight: Any, scale: float) -> None:
    """The size of a change, scaled up from the sample to the whole, and relative to what was changed."""
    change[_NORM] *= scale**0.5
    size, norm = weight[_NORM], change[_NORM]
    change[_RATIO] = norm / size if size > 0 else (0.0 if norm == 0 else _INF)


def thinned(tensor: Tensor, blocks: int, block: int) -> Tensor:
    """A parameter's values, flat; for a large one, evenly spaced blocks of it."""
    flat = tensor.reshape(-1)
    if flat.numel() <= blocks * block:
        return flat
    span = flat.numel() // blocks
    return flat[: span * blocks].view(blocks, span)[:, :block]
