"""Min/max pyramid: buckets of sixteen rows on each level, for any zoom of a series.

A level is a tuple of arrays with one row per bucket. Level 0 is the raw rows. Each further level has the
minimum, the maximum, the number of bad (non-finite) values and the sum of sixteen rows below. Extremes and
sum are those of the finite values; the extremes are NaN if there are none. So a NaN cannot hide a spike, and
a spike is never sampled away.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from clew.store.write.row_blocks import Array

FACTOR = 16
Level = tuple[Array, ...]


class Envelope(NamedTuple):
    """A series at one zoom: per bucket its first step, extremes, bad and all values, and their sum.

    If the raw points fit, each bucket is one point and the extremes are its value, including NaN and
    infinities.
    """

    steps: Array
    mins: Array
    maxs: Array
    bad: Array
    counts: Array
    sums: Array  # of the finite values

    def means(self) -> Array:
        """Mean of the finite values of each bucket, NaN if there are none."""
        finite = self.counts - self.bad
        with np.errstate(over="ignore"):
            means: Array = np.where(finite > 0, self.sums / np.maximum(finite, 1), np.nan)
        return means


def fold(level: Level) -> Level:
    """The next level up; the last bucket may have fewer than sixteen rows."""
    if len(level) == 1:
        return _extremes(level[0])
    mins, maxs, bad, sums = level
    return _reduced(np.fmin, mins), _reduced(np.fmax, maxs), _reduced(np.add, bad), _reduced(np.add, sums)


def fold_steps(level: Level) -> Level:
    """A bucket begins at the step of its first row."""
    return (level[0][::FACTOR],)


def _extremes(values: Array) -> Level:
    finite = np.isfinite(values)
    bad = np.zeros((-(-len(values) // FACTOR), values.shape[1]), "<u4")
    if finite.all():
        sums = _reduced(np.add, values, "<f8")
    else:
        sums = _reduced(np.add, np.where(finite, values, 0), "<f8")
        bad = _reduced(np.add, ~finite, "<u4")
        values = np.where(finite, values, values.dtype.type(np.nan))
    return _reduced(np.fmin, values), _reduced(np.fmax, values), bad, sums


def _reduced(operation: Any, rows: Array, kind: str | None = None) -> Array:
    """Sixteen strided passes: far faster than reducing over a short axis."""
    result: Array = rows[::FACTOR].astype(kind or rows.dtype)
    with np.errstate(over="ignore"):  # a sum of huge values may be infinite
        for i in range(1, FACTOR):
            part = rows[i::FACTOR]
            operation(result[: len(part)], part, out=result[: len(part)])
    return result


def raw_envelope(steps: Array, values: Array) -> Envelope:
    """One bucket per point."""
    values = values.astype(np.float64)
    finite = np.isfinite(values)
    bad = (~finite).astype(np.int64)
    sums = values if finite.all() else np.where(finite, values, 0.0)
    return Envelope(steps, values, values, bad, np.ones(len(steps), np.int64), sums)


def point_buckets(steps: Array, values: Array) -> Envelope:
    """One bucket per point, for joining with other buckets: a bad value is not an extreme."""
    raw = raw_envelope(steps, values)
    clean = np.where(raw.bad > 0, np.nan, raw.mins)
    return raw._replace(mins=clean, maxs=clean)


def joined_envelopes(parts: list[Envelope]) -> Envelope:
    """Join envelopes, ordered by step."""
    together = Envelope(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
    if (together.steps[1:] >= together.steps[:-1]).all():
        return together
    order = np.argsort(together.steps, kind="stable")
    return Envelope(*(array[order] for array in together))


def regrouped(envelope: Envelope, limit: int) -> Envelope:
    """Merge neighbouring buckets until at most `limit` are left."""
    count = len(envelope.steps)
    if count <= limit:
        return envelope
    return grouped(envelope, np.arange(0, count, -(-count // limit)))


def grouped(envelope: Envelope, starts: Array) -> Envelope:
    """Merge the buckets from each of `starts` up to the next."""
    with np.errstate(over="ignore"):
        sums = np.add.reduceat(envelope.sums, starts, axis=0)
    return Envelope(
        envelope.steps[starts],
        np.fmin.reduceat(envelope.mins, starts, axis=0),
        np.fmax.reduceat(envelope.maxs, starts, axis=0),
        np.add.reduceat(envelope.bad, starts, axis=0),
        np.add.reduceat(envelope.counts, starts, axis=0),
        sums,
    )


def pack(level: Level) -> bytes:
    return b"".join(np.ascontiguousarray(array).tobytes() for array in level)


def unpack(blob: bytes, kinds: tuple[str, ...], width: int) -> Level:
    """Reverse of `pack`: arrays of these dtypes with the same number of rows."""
    sizes = [np.dtype(kind).itemsize * width for kind in kinds]
    rows, left = divmod(len(blob), sum(sizes))
    if left:
        raise ValueError("a chunk of odd size")
    offsets = np.cumsum([0, *sizes]) * rows
    return tuple(
        np.frombuffer(blob, kind, rows * width, int(offset)).reshape(rows, width)
        for kind, offset in zip(kinds, offsets, strict=False)
    )
