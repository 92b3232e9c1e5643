"""Functions that are called inside a sampled forward and that tell something about outputs."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from torch import Tensor, nn

from clew.hooks.collect_layers.attention_masks import MASK_NAMES, MASK_SIGNALS, Line, Masks
from clew.hooks.collect_layers.noise_scale import NOISE_NAMES, Noise, negative_share
from clew.hooks.collect_layers.pending_rows import Pending
from clew.hooks.collect_layers.trained_models import ModelBook, Root
from clew.hooks.entry.sink import Sink
from clew.measure.deferred_values import Late, on_host
from clew.records import signals
from clew.records.site import Site

NAMES = frozenset(MASK_NAMES | NOISE_NAMES)
MOST_ROWS = 64  # of a step: a recurrent loop may make the same call hundreds of times


class FunctionCalls:
    """Hands calls to those who understand them, and writes down what they make of them."""

    def __init__(self, sink: Sink, late: Late, models: ModelBook) -> None:
        self._late = late
        self._models = models
        self._pending = Pending(sink, late)
        self._noise = Noise(self._noise_scaled)
        self._masks = Masks(self._masked)
        self._place: tuple[Root, nn.Module] | None = None
        self._rows = 0

    def begin(self) -> None:
        """A forward begins that is looked at closely."""
        self._noise.begin()
        self._masks.begin()

    def called(
        self, root: Root, module: nn.Module, name: str, args: Any, kwargs: dict[str, Any], result: Any
    ) -> None:
        """One of `NAMES` returned inside this module."""
        self._place = (root, module)
        if name in NOISE_NAMES:
            self._noise.called(name, args, result)
        if name in MASK_NAMES:
            self._masks.called(name, args, kwargs)

    def _noise_scaled(self, scale: Tensor, line: Line) -> None:
        self._put((signals.NOISE_NEGATIVE.name,), "noise", negative_share(scale).reshape(1), line)

    def _masked(self, name: str, numbers: Tensor, line: Line) -> None:
        self._put(MASK_SIGNALS, name, numbers, line)

    def _put(self, recorded: tuple[str, ...], op: str, values: Tensor, line: Line) -> None:
        if self._place is None or self._rows >= MOST_ROWS:
            return
        self._rows += 1
        root, module = self._place
        path = self._models.path_of(root, module)
        site = Site(path, op, line[0], line[1], phase="train", root=root.name)
        row = np.full(len(recorded), np.nan)
        if on_host(values):
            row[:] = values.numpy()
        else:
            self._late.add(values, partial(_fill, row))
        self._pending.put(recorded, site, row)

    def commit(self, step: int) -> None:
        self._rows = 0
        self._pending.commit(step)

    def discard(self) -> None:
        self._rows = 0
        self._pending.discard()


def _fill(row: Any, values: Tensor) -> None:
    row[:] = values.numpy()
