"""The content of a log in columns, fed by the reader from files or by the writer while it writes.

Both feed the same payload bytes, so a live view and a recorded run cannot disagree. The only difference is
memory: a live `RunData` must not grow with the run, so with `keep_rows` it keeps a table's first and last
rows and drops those in between; `complete` says whether it did.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np

from clew.records.site import Site
from clew.store.read.decoder import DecodeError, Decoder, Event, Fact, Mark, RowBlock, Table
from clew.store.write.frames import DTYPES
from clew.store.write.row_blocks import Array

__all__ = ["Event", "Fact", "RunData"]

SAMPLED_HEAD = 64  # first rows kept of a sampled (f4, u1) table: its start
EVERY_HEAD = 1024  # first rows kept of an every-step (f8) table
EVERY_TAIL = 100_000  # last rows kept of one: about 16 MB for the 20 columns we record


class RunData:
    """The decoded, columnar content of one rank's log.

    `keep_rows` bounds what is kept of sampled tables: the first 64 rows and at least the last `keep_rows`.
    Every-step tables then keep their first 1,024 and at least the last 100,000.
    """

    def __init__(self, *, keep_rows: int | None = None) -> None:
        self.facts: list[Fact] = []
        self.events: list[Event] = []
        self.end: dict[str, Any] | None = None
        self.begin: dict[str, Any] = {}
        self.last_step = -1
        self.damaged = 0  # payloads that could not be understood
        self._keep_rows = keep_rows
        self._decoder = Decoder()
        self._tables: dict[Table, _Rows] = {}
        self._columns: dict[str, list[tuple[Table, int]]] = {}  # of each signal: where it is recorded
        self._lock = threading.RLock()  # the writer's thread feeds while another thread reads

    @property
    def sites(self) -> dict[int, Site]:
        return self._decoder.sites

    @property
    def complete(self) -> bool:
        """False if rows were dropped to bound memory: run the checks on the recorded run instead."""
        return not any(rows.dropped for rows in self._tables.values())

    @property
    def is_empty(self) -> bool:
        """Whether not even the beginning of a log exists."""
        return not (self.begin or self.sites or self.facts or self.events or self.end)

    def feed(self, payload: bytes) -> None:
        """Read one payload; one that makes no sense is counted and skipped."""
        with self._lock:
            try:
                record = self._decoder.decode(payload)
            except DecodeError:
                self.damaged += 1
            else:
                self._keep(record)

    def _keep(self, record: object) -> None:
        if isinstance(record, RowBlock):
            self._add_rows(record)
        elif isinstance(record, Fact):
            self.facts.append(record)
        elif isinstance(record, Event):
            self.events.append(record)
        elif isinstance(record, Mark) and record.kind == "end":
            self.end = record.data
        elif isinstance(record, Mark) and record.kind == "begin":
            self.begin = record.data
            self.end = None  # records after the end: a restarted job

    def _add_rows(self, block: RowBlock) -> None:
        if not len(block.steps):
            return
        rows = self._tables.get(block.table)
        if rows is None:
            rows = self._tables[block.table] = _Rows(block.table, *self._bounds(block.table))
            for k, signal in enumerate(block.table.signals):
                self._columns.setdefault(signal, []).append((block.table, k))
        rows.add(block.steps, block.values)
        self.last_step = max(self.last_step, int(block.steps.max()))

    def _bounds(self, table: Table) -> tuple[int, int | None]:
        if self._keep_rows is None:
            return 0, None
        return (EVERY_HEAD, EVERY_TAIL) if table.dtype == "f8" else (SAMPLED_HEAD, self._keep_rows)

    def signal_names(self) -> list[str]:
        """The signals that have at least one row, in alphabetical order."""
        with self._lock:
            return sorted(self._columns)

    def series(self, name: str) -> Iterator[tuple[Site, Array, Array]]:
        """For each site of the signal its steps and values (float64), ordered by step."""
        pieces: dict[Site, list[tuple[Array, Array]]] = {}
        with self._lock:
            for table, k in self._columns.get(name, ()):
                steps, columns = self._tables[table].signal(k)
                for site, column in zip(table.sites, columns, strict=True):
                    pieces.setdefault(site, []).append((steps, column))
        for site, found in pieces.items():
            yield (site, *_merged(found))


def _merged(pieces: list[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Merge pieces into one series; rows of the same step stay in the order written."""
    steps, values = pieces[0]
    if len(pieces) > 1:
        steps = np.concatenate([p[0] for p in pieces])
        values = np.concatenate([p[1] for p in pieces])
    if (steps[1:] < steps[:-1]).any():
        order = np.argsort(steps, kind="stable")
        steps, values = steps[order], values[order]
    return steps, values


class _Rows:
    """The rows of one table in growing buffers, without bookkeeping per block."""

    def __init__(self, table: Table, head: int, tail: int | None) -> None:
        self._head, self._tail = head, tail
        # Dropping row by row would move the tail each time; with a quarter of slack that is rare.
        self._limit = None if tail is None else head + tail + max(16, tail // 4)
        self._shape = (len(table.sites), len(table.signals))
        self._n = 0
        self._steps: Array = np.empty(0, np.int64)
        self._cells: Array = np.empty((0, table.columns), DTYPES[table.dtype])
        self.dropped = 0
        self._taken: Array = np.empty(0, np.int64)  # the steps as returned, shared by all signals
        self._taken_after = 0

    def add(self, steps: Array, values: Array) -> None:
        while self._limit is not None and self._n + len(steps) > self._limit:
            fit = self._limit - self._n
            self._append(steps[:fit], values[:fit])
            steps, values = steps[fit:], values[fit:]
            self._drop_middle()
        self._append(steps, values)

    def _append(self, steps: Array, values: Array) -> None:
        end = self._n + len(steps)
        if end > len(self._steps):
            self._grow(end)
        self._steps[self._n : end] = steps
        self._cells[self._n : end] = values
        self._n = end

    def _grow(self, needed: int) -> None:
        size = max(needed, len(self._steps) * 5 // 4 + 16)
        size = size if self._limit is None else min(size, self._limit)
        # In place, if the system can: a copy would need the memory of a long run twice. There are no views of
        # them.
        self._steps.resize(size, refcheck=False)
        self._cells.resize((size, self._cells.shape[1]), refcheck=False)

    def _drop_middle(self) -> None:
        assert self._tail is not None
        keep = slice(self._n - self._tail, self._n)
        end = self._head + self._tail
        for buffer in (self._steps, self._cells):
            buffer[self._head : end] = buffer[keep].copy()
        self.dropped += self._n - end
        self._n = end

    def signal(self, k: int) -> tuple[Array, Array]:
        """Steps, and sites × steps for the k-th signal: one strided copy for all sites."""
        sites, signals = self._shape
        cube = self._cells[: self._n].reshape(self._n, sites, signals)
        if len(self._taken) != self._n or self._taken_after != self.dropped:
            self._taken, self._taken_after = self._steps[: self._n].copy(), self.dropped
            self._taken.flags.writeable = False
        return self._taken, np.array(cube[:, :, k].T, dtype=np.float64, order="C")
