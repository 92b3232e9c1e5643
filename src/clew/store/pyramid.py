"""Buckets of sixteen, of sixteen, of sixteen: the arithmetic of the min/max pyramid.

A level is a tuple of arrays with one row per bucket. Level 0 is the raw rows, each further
one holds minimum, maximum and the number of bad (non-finite) values of sixteen below. The
extremes are of the finite values, NaN where there are none: a NaN can't hide a spike and a
spike is never sampled away.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from clew.store.blocks import Array

FACTOR = 16
Level = tuple[Array, ...]


class Envelope(NamedTuple):
    """A series at one zoom: per bucket its first step, extremes, bad and all values.

    Where the raw points fit, each bucket is one point and the extremes are its value, NaN and
    infinities included.
    """

    steps: Array
    mins: Array
    maxs: Array
    bad: Array
    counts: Array


def fold(level: Level) -> Level:
    """The next level up; the last bucket may hold fewer than sixteen."""
    if len(level) == 1:
        return _extremes(level[0])
    mins, maxs, bad = level
    return _reduced(np.fmin, mins), _reduced(np.fmax, maxs), _reduced(np.add, bad)


def fold_steps(level: Level) -> Level:
    """A bucket begins where its first row does."""
    return (level[0][::FACTOR],)


def _extremes(values: Array) -> Level:
    finite = np.isfinite(values)
    bad = np.zeros((-(-len(values) // FACTOR), values.shape[1]), "<u4")
    if not finite.all():
        bad = _reduced(np.add, (~finite).astype("<u4"))
        values = np.where(finite, values, values.dtype.type(np.nan))
    return _reduced(np.fmin, values), _reduced(np.fmax, values), bad


def _reduced(operation: Any, rows: Array) -> Array:
    """Sixteen strided passes: far faster than reducing over a short axis."""
    result: Array = rows[::FACTOR].copy()
    for i in range(1, FACTOR):
        part = rows[i::FACTOR]
        operation(result[: len(part)], part, out=result[: len(part)])
    return result


def raw_envelope(steps: Array, values: Array) -> Envelope:
    """One bucket per point."""
    values = values.astype(np.float64)
    bad = (~np.isfinite(values)).astype(np.int64)
    return Envelope(steps, values, values, bad, np.ones(len(steps), np.int64))


def point_buckets(steps: Array, values: Array) -> Envelope:
    """One bucket per point, to be put together with others: a bad value is no extreme."""
    raw = raw_envelope(steps, values)
    clean = np.where(raw.bad > 0, np.nan, raw.mins)
    return raw._replace(mins=clean, maxs=clean)


def joined_envelopes(parts: list[Envelope]) -> Envelope:
    """One after another, ordered by step."""
    together = Envelope(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
    if (together.steps[1:] >= together.steps[:-1]).all():
        return together
    order = np.argsort(together.steps, kind="stable")
    return Envelope(*(array[order] for array in together))


def regrouped(envelope: Envelope, limit: int) -> Envelope:
    """Neighbouring buckets put together until at most `limit` are left."""
    count = len(envelope.steps)
    if count <= limit:
        return envelope
    starts = np.arange(0, count, -(-count // limit))
    return Envelope(
        envelope.steps[starts],
        np.fmin.reduceat(envelope.mins, starts),
        np.fmax.reduceat(envelope.maxs, starts),
        np.add.reduceat(envelope.bad, starts),
        np.add.reduceat(envelope.counts, starts),
    )


def pack(level: Level) -> bytes:
    return b"".join(np.ascontiguousarray(array).tobytes() for array in level)


def unpack(blob: bytes, kinds: tuple[str, ...], width: int) -> Level:
    """What `pack` packed: arrays of these types with the same number of rows."""
    sizes = [np.dtype(kind).itemsize * width for kind in kinds]
    rows, left = divmod(len(blob), sum(sizes))
    if left:
        raise ValueError("a chunk of odd size")
    offsets = np.cumsum([0, *sizes]) * rows
    return tuple(
        np.frombuffer(blob, kind, rows * width, int(offset)).reshape(rows, width)
        for kind, offset in zip(kinds, offsets, strict=False)
    )
