"""What goes into the log: numbers for sites and tables, and queued rows and records as payloads.

A row need not repeat where it belongs: its site and table have numbers, given on the training thread. The
payloads are encoded on the writer's thread.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from clew.records.signals import LOSS
from clew.records.site import Site
from clew.store.write.frames import DTYPES, MAX_FRAME, encode_json

if TYPE_CHECKING:
    from clew.store.write.row_blocks import Part

MARK_EVERY = 2.0  # seconds: how far `list_runs` may have to search back for a place to start


@dataclass(frozen=True)
class Columns:
    """What the encoder must know of a table."""

    dtype: str
    count: int
    loss: int | None  # the column with the training loss, for the marks


class Names:
    """Gives each site and table its number once, and declares it in the log before it is used."""

    def __init__(self, declare: Callable[[dict[str, Any]], None]) -> None:
        self._declare = declare
        self._sites: dict[Site, int] = {}
        self._train_sites: set[int] = set()
        self._table_ids: dict[tuple[tuple[str, ...], tuple[int, ...], str], int] = {}
        self.tables: dict[int, Columns] = {}
        self.lock = threading.RLock()

    def site(self, site: Site) -> int:
        with self.lock:
            number = self._sites.get(site)
            if number is None:
                number = self._sites[site] = len(self._sites)
                if site.phase != "eval":
                    self._train_sites.add(number)
                self._declare({"t": "site", "id": number, "site": site.to_json()})
            return number

    def table(self, signals: Sequence[str], sites: Sequence[int], dtype: str) -> int:
        if dtype not in DTYPES:
            raise ValueError(f"a table is of {', '.join(DTYPES)}, not {dtype!r}")
        key = (tuple(signals), tuple(sites) or (self.site(Site()),), dtype)
        with self.lock:
            number = self._table_ids.get(key)
            if number is None:
                number = self._table_ids[key] = self._new_table(*key)
            return number

    def _new_table(self, signals: tuple[str, ...], sites: tuple[int, ...], dtype: str) -> int:
        number = len(self.tables)
        loss = self._loss_column(signals, sites)
        self.tables[number] = Columns(dtype, len(signals) * len(sites), loss)
        self._declare({"t": "table", "id": number, "dtype": dtype, "signals": signals, "sites": sites})
        return number

    def _loss_column(self, signals: tuple[str, ...], sites: tuple[int, ...]) -> int | None:
        training = [i for i, site in enumerate(sites) if site in self._train_sites]
        if LOSS.name not in signals or not training:
            return None
        return training[0] * len(signals) + signals.index(LOSS.name)


@dataclass
class QueuedRows:
    """The payloads of one flush: declarations and facts first, then one block per table.

    Rows of one table keep their order. Grouping by table costs nothing, since a series is in one table, and
    turns thousands of interleaved rows into a handful of blocks.
    """

    declarations: list[bytes] = field(default_factory=list)
    records: list[bytes] = field(default_factory=list)
    blocks: list[bytes] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def payloads(self) -> list[bytes]:
        return self.declarations + self.records + self.blocks


class Encoder:
    """Encodes batches and remembers how far the run is."""

    def __init__(self, tables: Mapping[int, Columns]) -> None:
        self._tables = tables
        self._step = -1
        self._loss: float | None = None
        self._marked = time.monotonic()
        self._moved = False

    def encode(self, items: Iterable[Any]) -> QueuedRows:
        """Encode items: rows are tuples (table, steps, the rows of each), all others are JSON records."""
        batch = QueuedRows()
        found: dict[int, list[Part]] = {}
        for item in items:
            if type(item) is tuple:
                _add(found.setdefault(item[0], []), item[1], item[2])
            else:
                self._record(item, batch)
        for table, parts in found.items():
            self._block(table, parts, batch)
        if self._moved and time.monotonic() - self._marked > MARK_EVERY:
            batch.blocks.append(encode_json({"t": "mark", **self.progress()}))
            self._marked, self._moved = time.monotonic(), False
        return batch

    def progress(self) -> dict[str, Any]:
        """How far the run is: what a listing shows without reading the log."""
        return {"step": self._step, "loss": self._loss, "wall": time.time()}

    def _record(self, record: dict[str, Any], batch: QueuedRows) -> None:
        try:
            payload = encode_json(record)
        except Exception as e:  # noqa: BLE001 - a fact of any content must not stop the log
            batch.errors.append(f"a record could not be written ({type(e).__name__}: {e})")
            return
        if len(payload) > MAX_FRAME:
            batch.errors.append(f"a {record.get('t')} of {len(payload)} bytes is too large to record")
        elif record.get("t") in ("site", "table"):
            batch.declarations.append(payload)
        else:
            batch.records.append(payload)

    def _block(self, table: int, parts: list[Part], batch: QueuedRows) -> None:
        try:
            batch.blocks.append(self._encoded(table, parts))
        except Exception as e:  # noqa: BLE001 - what a probe passed in must not stop the log
            loose = [(step, row) for steps, rows in parts for step, row in zip(steps, rows, strict=True)]
            if len(loose) > 1:  # find the rows that do fit
                for step, row in loose:
                    self._block(table, [([step], [row])], batch)
            else:
                batch.errors.append(f"a row could not be written ({type(e).__name__}: {e})")

    def _encoded(self, table: int, parts: list[Part]) -> bytes:
        # Imported here and not above: by the time a row exists, the program has loaded numpy anyway.
        from clew.store.write.row_blocks import block_steps, encode_block

        columns = self._tables[table]
        payload = encode_block(table, parts, columns.dtype, columns.count)
        self._step, self._moved = max(self._step, int(block_steps(payload).max())), True
        if columns.loss is not None:
            self._loss = _number(parts[-1][1][-1][columns.loss])
        return payload


def _add(parts: list[Part], steps: Any, rows: Any) -> None:
    """Rows that came one by one become one part; a matrix is a part already."""
    if hasattr(rows, "tobytes"):
        parts.append((steps, rows))
    elif parts and isinstance(parts[-1][1], list):
        parts[-1][0].extend(steps)
        parts[-1][1].extend(rows)
    else:
        parts.append(([*steps], [*rows]))


def _number(value: Any) -> float | None:
    number = float(value)
    return number if math.isfinite(number) else None
