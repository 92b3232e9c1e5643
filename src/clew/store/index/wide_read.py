"""Reads a signal at all its sites at once, for a map of layers by steps.

One lane of sixteen sites is read after the other and merged right away, so that memory grows with the answer
and not with the log.
"""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

import numpy as np

from clew.store.index.lanes import STEPS_LANE, Band, Lane, load_rows
from clew.store.index.pyramid import FACTOR, Envelope, Level, grouped
from clew.store.write.row_blocks import Array


class Stretch(NamedTuple):
    """A signal at all sites of one band: the arrays of the envelope are steps × sites."""

    sites: list[str]
    envelope: Envelope


def read_stretch(
    db: sqlite3.Connection, band: Band, k: int, sites: list[str], steps: tuple[int, int], limit: int
) -> Stretch | None:
    """The k-th signal between two steps in at most `limit` stretches; None if there are no rows."""
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
