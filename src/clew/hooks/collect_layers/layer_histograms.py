"""Histograms of gradients, weights and activations, on a few of the sampled steps.

They change slowly and cost more than the statistics, so the steps that record them get further and further
apart: a long run has some sixty of each. Their cost is part of the sampled step's.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from torch import Tensor

from clew.hooks.entry.guard import Guard
from clew.hooks.entry.sink import Sink
from clew.measure.deferred_values import Late, on_host
from clew.measure.histogram import BINS, ROW, device_row, host_row
from clew.records.signals import measured
from clew.records.site import Site

LEAST = 4  # steps between two with histograms, after the first two
SPACING = 1.3  # ratio of each such step to the one before, later on: 57 of them up to step ten million
FIELDS = ("lo", "hi", *(f"{k:02d}" for k in range(BINS)))

Key = tuple[str, Any]  # kind ("gradient", …), and its owner


class Histograms:
    """Gets every tensor measured in a sampled step; takes histograms on the steps that are due."""

    def __init__(self, sink: Sink, late: Late, guard: Guard) -> None:
        self._sink = sink
        self._late = late
        self._due = 0
        self.wanted = True  # in the running step
        self._rows: dict[Key, np.ndarray[Any, Any]] = {}
        self._sites: dict[Key, int] = {}
        self._tables: dict[tuple[Key, ...], int] = {}
        self.seen = guard.inner("histograms", self._seen)
        self.commit = guard.inner("histograms", self._commit)

    def prepare(self, step: int) -> None:
        """A sampled step begins."""
        self._rows = {}
        self.wanted = step >= self._due

    def discard(self, what: str) -> None:
        """Drop what was measured of this kind."""
        self._rows = {key: row for key, row in self._rows.items() if key[0] != what}

    def _seen(self, what: str, key: Any, site: Callable[[], Site], tensor: Tensor) -> None:
        row = host_row(tensor) if on_host(tensor) else self._awaited(device_row(tensor))
        if row is None:
            return
        full = (what, key)
        if full not in self._sites:
            self._sites[full] = self._sink.site(site())
        self._rows[full] = row

    def _awaited(self, values: Tensor | None) -> np.ndarray[Any, Any] | None:
        if values is None:
            return None
        row = np.full(ROW, np.nan)

        def fill(fetched: Tensor) -> None:
            row[:] = fetched.numpy()

        self._late.add(values, fill)
        return row

    def _commit(self, step: int) -> None:
        rows, self._rows = self._rows, {}
        if not rows:
            return
        self.wanted = False
        self._due = 1 if step == 0 else max(step + LEAST, int(step * SPACING))
        for what in dict.fromkeys(kind for kind, _ in rows):
            keys = tuple(key for key in rows if key[0] == what)
            self._late.then(partial(self._write, self._table(what, keys), step, [rows[k] for k in keys]))

    def _table(self, what: str, keys: tuple[Key, ...]) -> int:
        table = self._tables.get(keys)
        if table is None:
            recorded = [measured(what).histogram_name(field) for field in FIELDS]
            table = self._sink.table(recorded, [self._sites[key] for key in keys], "f4")
            self._tables[keys] = table
        return table

    def _write(self, table: int, step: int, rows: list[np.ndarray[Any, Any]]) -> None:
        self._sink.row(table, step, np.concatenate(rows))
