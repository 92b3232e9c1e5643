"""Layout of rows in the index, and reading them: bands of a table, in lanes of sixteen sites, in chunks.

A *band* is a stretch of a table whose steps never decrease. A *lane* contains one signal of up to sixteen of
its sites, so that one site can be read without the other hundreds. A lane is cut into chunks, on every level
of the pyramid.
"""

from __future__ import annotations

import sqlite3
from typing import Any, NamedTuple

import numpy as np

from clew.store.index.downsampling import (
    FACTOR,
    Envelope,
    Level,
    grouped,
    joined_envelopes,
    point_buckets,
    regrouped,
    unpack,
)
from clew.store.index.index_cache import StaleCache, get_chunks
from clew.store.write.frames import DTYPES
from clew.store.write.row_blocks import Array

LANE_SITES = 16  # sites per chunk: one site can then be read without the other hundreds
NARROW = 64  # most columns of a narrow table
NARROW_ROWS, WIDE_ROWS = 4096, 256  # rows per chunk; multiples of 16, so that no bucket straddles two
STEPS_LANE = -1  # where a band's steps are stored

Lanes = dict[int, slice]


class Band(NamedTuple):
    """A stretch of a table with steps that never decrease."""

    id: int
    dtype: str
    sites: int
    signals: int
    rows: int
    last: int  # its last step

    @property
    def chunk_rows(self) -> int:
        return NARROW_ROWS if self.sites * self.signals <= NARROW else WIDE_ROWS

    @property
    def groups(self) -> int:
        return -(-self.sites // LANE_SITES)

    def lanes(self) -> Lanes:
        """For each lane its columns, ordered by signal and then by site."""
        return {
            k * self.groups + group: slice(
                k * self.sites + group * LANE_SITES,
                k * self.sites + min((group + 1) * LANE_SITES, self.sites),
            )
            for k in range(self.signals)
            for group in range(self.groups)
        }

    def width(self, lane: int) -> int:
        if lane == STEPS_LANE:
            return 1
        before: int = lane % self.groups * LANE_SITES
        return min(LANE_SITES, self.sites - before)

    def kinds(self, lane: int, level: int) -> tuple[str, ...]:
        """The dtypes of the arrays in a chunk."""
        if lane == STEPS_LANE:
            return ("<i8",)
        values = DTYPES[self.dtype]
        return (values,) if level == 0 else (values, values, "<u4", "<f8")


def load_band(db: sqlite3.Connection, number: int) -> Band:
    row = db.execute(
        "SELECT id, dtype, sites, signals, rows, last FROM bands WHERE id=?", (number,)
    ).fetchone()
    if row is None:
        raise StaleCache("a band is missing")
    return Band(*row)


def load_rows(db: sqlite3.Connection, band: Band, level: int, lane: int, start: int, end: int) -> Level:
    """The rows start … end of a level."""
    kinds, size = band.kinds(lane, level), band.chunk_rows
    if end <= start:
        return tuple(np.empty((0, band.width(lane)), kind) for kind in kinds)
    first = start // size
    blobs = get_chunks(db, (band.id, level, lane), first, (end - 1) // size)
    chunks = [unpack(blob, kinds, band.width(lane)) for blob in blobs]
    part = slice(start - first * size, end - first * size)
    loaded = tuple(np.concatenate(arrays)[part] for arrays in zip(*chunks, strict=True))
    if len(loaded[0]) != end - start:
        raise StaleCache("a chunk is too short")
    return loaded


class Lane:
    """One series within a band."""

    def __init__(self, db: sqlite3.Connection, band: Band, k: int, col: int) -> None:
        self._db = db
        self._band = band
        self._lane = k * band.groups + col // LANE_SITES
        self._column = col % LANE_SITES

    def ordinals(self, lo: int, hi: int) -> tuple[int, int]:
        """The rows whose steps are within lo … hi."""
        start = self._position(lo, "left")
        return start, max(self._position(hi, "right"), start)

    def _position(self, step: int, side: Any) -> int:
        compare = ">=" if side == "left" else ">"
        query = f"SELECT min(seq) FROM spans WHERE band=? AND hi {compare} ?"
        seq = self._db.execute(query, (self._band.id, step)).fetchone()[0]
        if seq is None:
            return self._band.rows
        base = int(seq) * self._band.chunk_rows
        steps = self._steps(base, min(base + self._band.chunk_rows, self._band.rows))
        return base + int(np.searchsorted(steps, step, side))

    def _steps(self, start: int, end: int, level: int = 0) -> Array:
        return load_rows(self._db, self._band, level, STEPS_LANE, start, end)[0][:, 0]

    def rows(self, start: int, end: int) -> tuple[Array, Array]:
        values = load_rows(self._db, self._band, 0, self._lane, start, end)[0]
        return self._steps(start, end), values[:, self._column]

    def buckets(self, start: int, end: int, limit: int) -> Envelope:
        """At most `limit` buckets: whole ones of a fine enough level, the ends from raw rows."""
        level = _level(end - start, limit)
        if level == 0:
            return regrouped(point_buckets(*self.rows(start, end)), limit)
        size = FACTOR**level
        first, last = -(-start // size), end // size
        left = regrouped(point_buckets(*self.rows(start, first * size)), 1)
        right = regrouped(point_buckets(*self.rows(last * size, end)), 1)
        return regrouped(joined_envelopes([left, self._whole(level, first, last), right]), limit)

    def _whole(self, level: int, first: int, last: int) -> Envelope:
        arrays = load_rows(self._db, self._band, level, self._lane, first, last)
        mins, maxs, bad, sums = (array[:, self._column].astype(np.float64) for array in arrays)
        counts = np.full(last - first, FACTOR**level)
        steps = self._steps(first, last, level)
        return Envelope(steps, mins, maxs, bad.astype(np.int64), counts, sums)


class Stretch(NamedTuple):
    """A signal at all sites of one band: the arrays of the envelope are steps × sites."""

    sites: list[str]
    envelope: Envelope


def read_stretch(
    db: sqlite3.Connection, band: Band, k: int, sites: list[str], steps: tuple[int, int], limit: int
) -> Stretch | None:
    """The k-th signal at all sites between two steps, in at most `limit` buckets; None without rows.

    One lane of sixteen sites is read after the other and merged right away, so that memory grows with the
    answer and not with the log.
    """
    start, end = Lane(db, band, k, 0).ordinals(*steps)
    if end <= start:
        return None
    level = _level(end - start, limit)
    size = FACTOR**level
    first, last = start // size, -(-end // size)  # whole buckets: at most one more at either end
    begins = load_rows(db, band, level, STEPS_LANE, first, last)[0][:, 0]
    counts = np.minimum(size, band.rows - np.arange(first, last) * size)
    groups = np.arange(0, len(begins), -(-len(begins) // limit))
    parts = [
        _lane_part(load_rows(db, band, level, k * band.groups + lane, first, last), begins, counts, groups)
        for lane in range(band.groups)
    ]
    joined = [np.concatenate(arrays, axis=1) for arrays in zip(*(part[1:] for part in parts), strict=True)]
    return Stretch(sites, Envelope(parts[0].steps, *joined))


def _level(rows: int, limit: int) -> int:
    """The coarsest level that still has `limit` buckets."""
    level = 0
    while FACTOR ** (level + 1) * limit <= rows:
        level += 1
    return level


def _lane_part(level: Level, begins: Array, counts: Array, groups: Array) -> Envelope:
    width = level[0].shape[1]
    every = np.broadcast_to(counts[:, None], (len(counts), width))
    if len(level) == 1:
        values = level[0].astype(np.float64)
        finite = np.isfinite(values)
        clean = np.where(finite, values, np.nan)
        bad = (~finite).astype(np.int64)
        return grouped(Envelope(begins, clean, clean, bad, every, np.where(finite, values, 0.0)), groups)
    mins, maxs, bad, sums = level
    return grouped(
        Envelope(begins, mins.astype(np.float64), maxs.astype(np.float64), bad.astype(np.int64), every, sums),
        groups,
    )
