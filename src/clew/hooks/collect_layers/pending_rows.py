"""Rows of a sampled step, written when the step ends or dropped if it was not a training step."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from clew.hooks.entry.sink import Sink
from clew.measure.deferred_values import Late
from clew.records.site import Site


class Pending:
    """One table for each kind of row and site; rows wait here for the end of the step."""

    def __init__(self, sink: Sink, late: Late) -> None:
        self._sink = sink
        self._late = late
        self._tables: dict[tuple[str, Site], int] = {}
        self._rows: list[tuple[int, Any]] = []

    def put(self, signals: Sequence[str], site: Site, values: Any) -> None:
        """Add a row of these signals at this site; its values may still be on their way from the device."""
        key = (signals[0], site)
        table = self._tables.get(key)
        if table is None:
            table = self._tables[key] = self._sink.table(signals, [self._sink.site(site)])
        self._rows.append((table, values))

    def commit(self, step: int) -> None:
        """The step has ended: write its rows."""
        for table, values in self._rows:
            self._late.then(partial(self._sink.row, table, step, values))
        self._rows = []

    def discard(self) -> None:
        """Drop the rows: they belong to an evaluation."""
        self._rows = []
