"""Reads the log into the index: rows become chunks, and the levels above are kept up to date."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable

import numpy as np

from clew.records.site import Site
from clew.store.index.downsampling import FACTOR, Level, fold, fold_steps, pack
from clew.store.index.index_cache import put_chunk
from clew.store.index.index_layout import STEPS_LANE, Band, Lanes, load_band, load_rows
from clew.store.read.decoder import DecodeError, Decoder, RowBlock, Table
from clew.store.write.row_blocks import Array

PENDING_BYTES = 4 << 20  # bytes of rows kept in memory while reading a log; ten times that at the peak
NO_STEP = -(2**63)  # before any real step


def site_key(site: Site) -> str:
    """A site as text: its name in the index."""
    return json.dumps(site.to_json(), sort_keys=True, separators=(",", ":"))


class Intake:
    """Reads the payloads of one rank."""

    def __init__(self, db: sqlite3.Connection, rank: int) -> None:
        self._db = db
        self._rank = rank
        self._decoder = Decoder()
        self._pending: dict[Table, list[RowBlock]] = {}
        self._bytes = 0
        self._restore()

    def _restore(self) -> None:
        """Restore what ids stand for, from earlier refreshes; sites first, since tables refer to them."""
        query = "SELECT payload FROM declared WHERE rank=? ORDER BY is_table, rowid"
        for (payload,) in self._db.execute(query, (self._rank,)).fetchall():
            self._decoder.decode(payload)

    def feed(self, payload: bytes) -> None:
        try:
            record = self._decoder.decode(payload)
        except DecodeError:
            return  # counted and reported where the run is read
        if isinstance(record, (Site, Table)):
            row = (self._rank, isinstance(record, Table), payload)
            self._db.execute("INSERT OR REPLACE INTO declared VALUES (?,?,?)", row)
        elif isinstance(record, RowBlock) and len(record.steps):
            self._pending.setdefault(record.table, []).append(record)
            self._bytes += len(payload)
            if self._bytes > PENDING_BYTES:
                self.store()

    def store(self) -> None:
        for table, blocks in self._pending.items():
            steps = np.concatenate([block.steps for block in blocks])
            values = np.concatenate([block.values for block in blocks])
            self._append(table, steps, values)
        self._pending.clear()
        self._bytes = 0

    def _append(self, table: Table, steps: Array, values: Array) -> None:
        if (steps[1:] < steps[:-1]).any():
            order = np.argsort(steps, kind="stable")
            steps, values = steps[order], values[order]
        band = self._band(table, int(steps[0]))
        self._spans(band, steps)
        self._extend(band, {STEPS_LANE: slice(0, 1)}, (steps[:, None],), fold_steps)
        cube = values.reshape(len(steps), band.sites, band.signals)
        by_signal = cube.transpose(0, 2, 1).reshape(len(steps), -1)
        self._extend(band, band.lanes(), (by_signal,), fold)
        grown = (band.rows + len(steps), int(steps[-1]), band.id)
        self._db.execute("UPDATE bands SET rows=?, last=? WHERE id=?", grown)

    def _band(self, table: Table, first: int) -> Band:
        """The table's latest band, or a new one if its steps are already past `first`."""
        sites = [site_key(site) for site in table.sites]
        key = hashlib.sha256(json.dumps([table.dtype, table.signals, sites]).encode()).hexdigest()
        query = "SELECT id FROM bands WHERE rank=? AND key=? ORDER BY id DESC LIMIT 1"
        found = self._db.execute(query, (self._rank, key)).fetchone()
        if found and (band := load_band(self._db, found[0])).last <= first:
            return band
        return self._new_band(table, key, sites)

    def _new_band(self, table: Table, key: str, sites: list[str]) -> Band:
        shape = (table.dtype, len(sites), len(table.signals), 0, NO_STEP)
        cursor = self._db.execute("INSERT INTO bands VALUES (NULL,?,?,?,?,?,?,?)", (self._rank, key, *shape))
        number = int(cursor.lastrowid or 0)
        self._db.executemany(
            "INSERT INTO series VALUES (?,?,?,?,?,?)",
            [
                (self._rank, s, site, number, k, i)
                for k, s in enumerate(table.signals)
                for i, site in enumerate(sites)
            ],
        )
        return Band(number, *shape)

    def _spans(self, band: Band, steps: Array) -> None:
        """Record the last step of every chunk that changes: needed to find a step."""
        size = band.chunk_rows
        end = band.rows + len(steps)
        spans = [
            (band.id, seq, int(steps[min((seq + 1) * size, end) - 1 - band.rows]))
            for seq in range(band.rows // size, -(-end // size))
        ]
        self._db.executemany("INSERT OR REPLACE INTO spans VALUES (?,?,?)", spans)

    def _extend(self, band: Band, lanes: Lanes, fresh: Level, folded: Callable[[Level], Level]) -> None:
        """Append rows to the lanes, and update the levels above.

        On each level the rows from `start` on are new or were unfinished. The chunk in which they begin is
        loaded. Since chunks are multiples of sixteen rows, it contains all of the first bucket.
        """
        level, start = 0, band.rows
        while True:
            base = start // band.chunk_rows * band.chunk_rows
            rows = self._with_old(band, level, lanes, (base, start), fresh)
            self._write(band, level, lanes, base, rows)
            if base + len(rows[0]) <= 1:
                return
            level, start = level + 1, start // FACTOR
            fresh = folded(tuple(array[start * FACTOR - base :] for array in rows))

    def _with_old(self, band: Band, level: int, lanes: Lanes, span: tuple[int, int], fresh: Level) -> Level:
        """The rows of the unfinished chunk, followed by the new ones."""
        old = span[1] - span[0]
        if not old:
            return fresh
        together = tuple(np.empty((old + len(array), array.shape[1]), array.dtype) for array in fresh)
        for array, new in zip(together, fresh, strict=True):
            array[old:] = new
        for lane, columns in lanes.items():
            for array, part in zip(together, load_rows(self._db, band, level, lane, *span), strict=True):
                array[:old, columns] = part
        return together

    def _write(self, band: Band, level: int, lanes: Lanes, base: int, rows: Level) -> None:
        size = band.chunk_rows
        for at in range(0, len(rows[0]), size):
            for lane, columns in lanes.items():
                chunk = pack(tuple(array[at : at + size, columns] for array in rows))
                put_chunk(self._db, (band.id, level, lane, (base + at) // size), chunk)
