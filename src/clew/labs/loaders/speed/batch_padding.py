"""How much of a batch of sequences is padding, and what grouping samples by length would save.

A field counts as padded only where that is certain: its samples differ in length before collate, a mask or
a field of lengths says so, or one value occurs at the end of rows and nowhere else.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from clew.labs.loaders.speed.stage_times import TimedLot
from clew.labs.snapshot.sample_fields import sample_fields
from clew.records.loader_speed import Padding, Paddings

Array = npt.NDArray[Any]

MASKS = ("attention_mask", "padding_mask", "pad_mask", "key_padding_mask", "mask")
LENGTHS = ("lengths", "length", "lens", "seq_len", "seq_lens", "seq_lengths")
SHORT = 8  # positions below which nothing is padding
PADDED_ROWS = 0.1  # of all rows that end with the filler, at least
INSIDE = 1e-3  # share of the other positions that may have the padding value by chance
POOL = 50  # batches that are shuffled together and then sorted by length
FEWEST_ROWS = 8


@dataclass(frozen=True)
class _Row:
    """One batch of a field: true lengths, and the length they were padded to."""

    lengths: tuple[int, ...]
    padded: int


def paddings(lots: Sequence[TimedLot], batches: Iterable[Any] = ()) -> Paddings:
    """The padding of batches with their samples, and of further batches without them."""
    made = [lot for lot in lots if lot.batch is not None]
    further = [TimedLot([], batch) for batch in batches]
    names = _arrays(made[0].batch if made else further[0].batch) if made or further else {}
    found = [padding for name in names if (padding := _of_field(name, made, [*made, *further])) is not None]
    return Paddings(tuple(found), len(made) + len(further))


def _arrays(batch: Any) -> dict[str, Array]:
    """The arrays of a batch by name; those that can be rows of sequences."""
    return {
        name: made
        for name, value in sample_fields(batch).items()
        if (made := _array(value)) is not None and 2 <= made.ndim <= 4 and _last_word(name) not in MASKS
    }


def _last_word(name: str) -> str:
    """The last word of a name such as `inputs.attention_mask`."""
    return name.rsplit(".", 1)[-1].lower()


def _array(value: Any) -> Array | None:
    if isinstance(value, Tensor):
        if value.layout is not torch.strided or value.is_quantized or value.is_complex():
            return None
        tensor = value.detach().cpu()
        return np.asarray(tensor.float() if tensor.dtype == torch.bfloat16 else tensor)
    return value if isinstance(value, np.ndarray) and value.dtype.kind in "buif" else None


def _of_field(name: str, made: Sequence[TimedLot], every: Sequence[TimedLot]) -> Padding | None:
    """Uses the first method that finds the lengths; None for a field that is not padded."""
    from_samples = _by_samples(name, made)
    if from_samples is not None:
        axis, rows = from_samples
        return _summed(name, axis, "samples", rows)
    for how, rows in _ways(name, every):
        if rows and any(min(row.lengths) < row.padded for row in rows):
            return _summed(name, 1, how, rows)
    return None


def _by_samples(name: str, lots: Sequence[TimedLot]) -> tuple[int, list[_Row]] | None:
    """Samples of different lengths in one array: the batch axis, and the lengths."""
    rows: dict[int, list[_Row]] = {}
    for lot in lots:
        value = _arrays(lot.batch).get(name)
        shapes = [shape for sample in lot.shapes if (shape := sample.get(name)) is not None]
        if value is None or len(shapes) != len(lot.shapes) or len(value) != len(shapes):
            return None
        if any(len(shape) + 1 != value.ndim for shape in shapes):
            return None
        for axis in range(1, value.ndim):
            lengths = tuple(shape[axis - 1] for shape in shapes)
            rows.setdefault(axis, []).append(_Row(lengths, value.shape[axis]))
    if not rows or any(max(row.lengths) > row.padded for lot in rows.values() for row in lot):
        return None
    padded = [axis for axis in rows if any(min(row.lengths) < row.padded for row in rows[axis])]
    return (padded[0], rows[padded[0]]) if len(padded) == 1 else None


def _ways(name: str, lots: Sequence[TimedLot]) -> Iterator[tuple[str, list[_Row]]]:
    batches = [sample_fields(lot.batch) for lot in lots]
    arrays = [_arrays(lot.batch).get(name) for lot in lots]
    if any(array is None or array.shape[1] < SHORT or not len(array) for array in arrays):
        return
    whole = [array for array in arrays if array is not None]
    yield from _by_companion(name, batches, whole)
    if whole[0].ndim == 2 or (whole[0].ndim == 3 and whole[0].dtype.kind == "f"):
        value = _filler(whole)
        if value is not None:
            rows = [_Row(tuple(_content(array, value)), array.shape[1]) for array in whole]
            yield f"pad value {value:g}", rows


def _by_companion(
    name: str, batches: Sequence[Mapping[str, Any]], arrays: Sequence[Array]
) -> Iterator[tuple[str, list[_Row]]]:
    """A mask or a field of lengths that comes with it."""
    for other in batches[0]:
        last = _last_word(other)
        beside = [_array(batch.get(other)) for batch in batches]
        known = [array for array in beside if array is not None]
        if other == name or len(known) != len(arrays):
            continue
        pairs = list(zip(known, arrays, strict=True))
        if last in MASKS and all(_is_mask(mask, array) for mask, array in pairs):
            yield other, [_Row(tuple(_marked(last, mask)), array.shape[1]) for mask, array in pairs]
        elif last in LENGTHS and all(_is_lengths(lengths, array) for lengths, array in pairs):
            yield other, [_Row(tuple(map(int, lengths)), array.shape[1]) for lengths, array in pairs]


def _is_mask(mask: Array, array: Array) -> bool:
    """Ones at one end of each row and zeros at the other, never mixed; at one end all rows agree."""
    if mask.ndim != 2 or mask.shape != array.shape[:2] or not bool(((mask == 0) | (mask == 1)).all()):
        return False
    changes = (np.diff(mask.astype(np.int8), axis=1) != 0).sum(axis=1)
    return bool((changes <= 1).all()) and any(_agree(mask))


def _agree(mask: Array) -> tuple[bool, bool]:
    """Whether all rows have the same mark at their beginning, and at their end."""
    return bool((mask[:, 0] == mask[0, 0]).all()), bool((mask[:, -1] == mask[0, -1]).all())


def _marked(name: str, mask: Array) -> list[int]:
    """The content of each row. A mask may mark content or padding: the end at which all rows
    agree is content; where they do at both, its name decides."""
    begin, end = _agree(mask)
    by_name = 0 if "pad" in name else 1
    real = by_name if begin and end else int(mask[0, 0] if begin else mask[0, -1])
    return [int(n) for n in (mask == real).sum(axis=1)]


def _is_lengths(lengths: Array, array: Array) -> bool:
    if lengths.ndim != 1 or len(lengths) != len(array) or lengths.dtype.kind not in "ui":
        return False
    return bool((lengths >= 0).all()) and int(lengths.max()) <= array.shape[1]


def _filler(arrays: Sequence[Array]) -> float | None:
    """The value at the end of rows, in runs of different lengths, and nowhere else."""
    ends = np.concatenate([_last(array) for array in arrays])
    values, counts = np.unique(ends[np.isfinite(ends)], return_counts=True)
    rows = len(ends)
    if rows < FEWEST_ROWS or not len(values):
        return None
    value = float(values[counts.argmax()])
    lengths = [(np.array(_content(array, value)), array) for array in arrays]
    ending = sum(int((length < array.shape[1]).sum()) for length, array in lengths)
    inside = sum(_inside(array, length, value) for length, array in lengths)
    content = sum(int(length.sum()) for length, _ in lengths)
    varied = len({int(n) for length, _ in lengths for n in length}) > 2
    if not content or ending < PADDED_ROWS * rows or inside > INSIDE * content or not varied:
        return None
    return value


def _last(array: Array) -> Array:
    """The value at the end of each row; for frames, where all their values are equal."""
    end = array[:, -1].astype(np.float64).reshape(len(array), -1)
    return np.where((end == end[:, :1]).all(axis=1), end[:, 0], np.nan)


def _is_value(array: Array, value: float) -> Array:
    """By position: whether it has only this value."""
    return np.asarray((array == value).reshape(*array.shape[:2], -1).all(axis=2))


def _content(array: Array, value: float) -> list[int]:
    """Positions of each row before the run of the value at its end."""
    same = _is_value(array, value)[:, ::-1]
    runs = np.where(same.all(axis=1), array.shape[1], (~same).argmax(axis=1))
    return [int(array.shape[1] - n) for n in runs]


def _inside(array: Array, lengths: Array, value: float) -> int:
    """Positions before the end of the content that have the value."""
    before = np.arange(array.shape[1])[None, :] < lengths[:, None]
    return int((_is_value(array, value) & before).sum())


# -- totals --


def _summed(name: str, axis: int, how: str, rows: Sequence[_Row]) -> Padding:
    lengths = [n for row in rows for n in row.lengths]
    shares = [1 - sum(row.lengths) / (len(row.lengths) * row.padded) for row in rows if row.padded]
    now = _waste(rows)
    longest = _waste([_Row(row.lengths, max(row.lengths)) for row in rows])
    batch = round(median(len(row.lengths) for row in rows))
    return Padding(
        field=name,
        axis=axis,
        how=how,
        batches=len(rows),
        samples=len(lengths),
        share=now,
        low=min(shares, default=0.0),
        high=max(shares, default=0.0),
        longest=min(longest, now),
        bucketed=min(bucketed(lengths, batch), longest, now),
        shortest_length=min(lengths),
        median_length=float(median(lengths)),
        p95_length=float(np.quantile(lengths, 0.95)),
        longest_length=max(lengths),
        padded_to=float(median(row.padded for row in rows)),
    )


def _waste(rows: Sequence[_Row]) -> float:
    """Share of padding in all elements."""
    whole = sum(len(row.lengths) * row.padded for row in rows)
    return 1 - sum(sum(row.lengths) for row in rows) / whole if whole else 0.0


def bucketed(lengths: Sequence[int], batch: int) -> float:
    """Share of padding if lots of POOL batches were sorted by length before they are cut into batches."""
    batch = max(batch, 1)
    pool = batch * POOL
    rows: list[_Row] = []
    for start in range(0, len(lengths), pool):
        ordered = sorted(lengths[start : start + pool])
        cuts = math.ceil(len(ordered) / batch)
        parts = [tuple(ordered[n * batch : (n + 1) * batch]) for n in range(cuts)]
        rows += [_Row(part, max(part)) for part in parts]
    return _waste(rows)
