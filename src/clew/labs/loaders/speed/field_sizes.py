"""The size of each field of a sample in bytes, and the smallest dtype that can store its values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np
import torch
from torch import Tensor

from clew.labs.snapshot.sample_fields import sample_fields
from clew.records.loader_speed import FieldSize, Sizes

MANY = 256  # values from which a smaller dtype is worthwhile: labels and lengths are not
MOST = 1 << 16  # values of a sample that are read
WHOLE = ("uint8", "int8", "int16", "int32")  # types of whole numbers, smallest first
LEVELS = 255  # of a picture
STEP_ERROR = 2e-3  # of a level: the float32 rounding of k/255, with some margin
OBJECT = 32.0  # bytes of a Python number, including its slot in the list
LOSS = 1e-6  # of the range of the values that float32 may lose compared to float64


@dataclass
class _Seen:
    """One field over the samples so far."""

    shapes: list[tuple[int, ...]] = field(default_factory=list)
    dtypes: list[str] = field(default_factory=list)
    bytes: list[float] = field(default_factory=list)
    low: float = np.inf
    high: float = -np.inf
    whole: bool = True
    levels: bool = True  # multiples of 1/255 between 0 and 1
    lost: float = 0.0  # in a cast to float32, at most
    finite: bool = True
    array: bool = False


class FieldSizes:
    """Measures samples one by one; keeps only numbers about them."""

    def __init__(self) -> None:
        self._seen_fields: dict[str, _Seen] = {}
        self._bytes: list[float] = []

    def add(self, sample: Any) -> None:
        total = 0.0
        for name, value in sample_fields(sample).items():
            total += self._add(self._seen_fields.setdefault(name, _Seen()), value)
        self._bytes.append(total)

    def _add(self, seen: _Seen, value: Any) -> float:
        shape, dtype, size = described(value)
        seen.shapes.append(shape)
        seen.dtypes.append(dtype)
        seen.bytes.append(size)
        values = _values(value)
        if values is None or not values.size:
            seen.array = False if values is None else seen.array
            return size
        seen.array = True
        _observe(seen, values)
        return size

    def result(self, workers: int = 0, notes: Sequence[str] = ()) -> Sizes:
        if not self._bytes:
            return Sizes(notes=tuple(notes), workers=workers)
        fields = tuple(_summed(name, seen) for name, seen in self._seen_fields.items())
        heaviest_first = tuple(sorted(fields, key=lambda f: -f.bytes))
        return Sizes(
            heaviest_first,
            len(self._bytes),
            float(median(self._bytes)),
            max(self._bytes),
            workers=workers,
            notes=tuple(notes),
        )


def described(value: Any) -> tuple[tuple[int, ...], str, float]:
    """Shape, dtype and bytes of any value."""
    if isinstance(value, Tensor):
        return tuple(value.shape), str(value.dtype).removeprefix("torch."), float(value.nbytes)
    if isinstance(value, (np.ndarray, np.generic)):
        return tuple(value.shape), str(value.dtype), float(value.nbytes)
    if isinstance(value, str):
        return (), "str", float(len(value.encode("utf-8", "surrogatepass")))
    if isinstance(value, (bytes, bytearray)):
        return (), "bytes", float(len(value))
    if isinstance(value, (list, tuple)):
        kind = f"list of {type(value[0]).__name__}" if value else "list"
        return (len(value),), kind, OBJECT * len(value) + sum(map(_bytes_apart, value))
    size = getattr(value, "size", None)
    bands = getattr(value, "getbands", None)
    if callable(bands) and isinstance(size, tuple) and len(size) == 2:  # a PIL image
        channels = len(bands())
        return (size[1], size[0], channels), "PIL image", float(size[0] * size[1] * channels)
    return (), type(value).__name__, 8.0 if isinstance(value, (bool, int, float)) else 0.0


def _bytes_apart(item: Any) -> float:
    """What an item of a list has beyond its slot."""
    return 0.0 if isinstance(item, (bool, int, float)) else described(item)[2]


def _values(value: Any) -> Any:
    """Up to MOST of the numbers, evenly spaced; None for anything that is not an array of numbers."""
    if isinstance(value, Tensor):
        if value.layout is not torch.strided or value.is_complex() or value.is_quantized:
            return None
        flat: Any = value.detach().cpu().reshape(-1)
        flat = flat.float() if flat.dtype in (torch.bfloat16, torch.float16) else flat
        return flat[:: -(-len(flat) // MOST) or 1].numpy()
    if isinstance(value, np.ndarray) and value.dtype.kind in "buif":
        flat = value.reshape(-1)
        return flat[:: -(-len(flat) // MOST) or 1]
    if isinstance(value, (list, tuple)):
        row = np.asarray(value[:MOST])
        return row if row.dtype.kind in "buif" else None
    return None


def _observe(seen: _Seen, values: Any) -> None:
    if values.dtype.kind == "f":
        if not bool(np.isfinite(values).all()):
            seen.finite = False
            return
        seen.whole = seen.whole and bool((values == np.rint(values)).all())
        if seen.levels:
            scaled = values.astype(np.float64) * LEVELS
            inside = bool((values >= 0).all() and (values <= 1).all())
            seen.levels = inside and bool((np.abs(scaled - np.rint(scaled)) <= STEP_ERROR).all())
    if values.dtype == np.float64 and bool((np.abs(values) < np.finfo(np.float32).max).all()):
        seen.lost = max(seen.lost, float(np.abs(values - values.astype(np.float32)).max()))
    elif values.dtype == np.float64:
        seen.lost = np.inf
    seen.low, seen.high = min(seen.low, float(values.min())), max(seen.high, float(values.max()))


def _summed(name: str, seen: _Seen) -> FieldSize:
    shape, dtype, size = _common(seen.shapes), seen.dtypes[0], float(median(seen.bytes))
    if len(set(seen.dtypes)) > 1:
        return FieldSize(name, shape, " or ".join(sorted(set(seen.dtypes))[:3]), size)
    fits, how = _fits(seen, dtype) if seen.array else ("", "")
    width = _width(dtype)
    return FieldSize(
        name, shape, dtype, size, fits, size * _width(fits) / width if fits and width else 0.0, how
    )


def _common(shapes: list[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape, with -1 where samples differ; the first sample's if their ranks differ."""
    first = shapes[0]
    if any(len(shape) != len(first) for shape in shapes):
        return (-1,)
    return tuple(n if all(s[d] == n for s in shapes) else -1 for d, n in enumerate(first))


def _fits(seen: _Seen, dtype: str) -> tuple[str, str]:
    """The smallest dtype and why; empty if the dtype is right, or if that is undecided."""
    many = median(int(np.prod(shape)) if shape else 1 for shape in seen.shapes) >= MANY
    if not many or not seen.finite or seen.low >= seen.high or not _width(dtype):
        return "", ""
    small = _smallest(seen) if seen.whole or not dtype.startswith("float") else ""
    if small and _width(small) < _width(dtype):
        return small, f"integers from {seen.low:.0f} to {seen.high:.0f}"
    if dtype.startswith("float") and seen.levels:
        return "uint8", "multiples of 1/255"
    if dtype == "float64" and seen.lost <= LOSS * (seen.high - seen.low):
        return "float32", "values with six significant digits"
    return "", ""


def _smallest(seen: _Seen) -> str:
    for name in WHOLE:
        bounds = np.iinfo(name)
        if bounds.min <= seen.low and seen.high <= bounds.max:
            return name
    return ""


def _width(dtype: str) -> int:
    if dtype == "bfloat16":
        return 2
    try:
        return int(np.dtype(dtype).itemsize) if dtype and dtype.isidentifier() else 0
    except TypeError:
        return 0
