"""Running counts for one field of a dataset, in constant memory."""

from __future__ import annotations

import math
from array import array as row_of
from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt

from clew.labs.loaders.field_values import Array, Leaf
from clew.records.dataset_survey import MOST_LISTED, Count, FieldSurvey

MOST_FEATURES = 1 << 18  # features of a sample that are tracked one by one
MOST_SHAPES = 20
FEW = 3  # indices reported for every shape


class FieldTally:
    """One field over all samples."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.samples = 0
        self.kinds: Counter[str] = Counter()
        self._shapes = _Kinds()
        self._dtypes = _Kinds()
        self._count = 0
        self._mean = 0.0
        self._squares = 0.0  # sum of squared differences from the mean
        self._low, self._high = math.inf, -math.inf
        self._zeros = 0
        self._whole = True
        self._bad, self._bad_at = 0, _Indices()
        self._blank, self._empty = _Indices(), _Indices()
        self._extent: _Extent | None = None
        self._levels, self._contrasts = row_of("d"), row_of("d")

    def add(self, index: int, leaf: Leaf) -> None:
        self.samples += 1
        self.kinds[leaf.kind] += 1
        self._shapes.add(shaped(leaf), index)
        self._dtypes.add(leaf.dtype, index)
        if leaf.text is not None and not leaf.text:
            self._empty.add(index)
        if leaf.array is not None:
            self._add_values(index, leaf.array)

    def _add_values(self, index: int, array: Array) -> None:
        if not array.size:
            self._empty.add(index)
            return
        finite = self._finite(index, array)
        if not finite.size:
            return
        low, high = float(finite.min()), float(finite.max())
        if low == high and array.size > 1:
            self._blank.add(index)
        self._low, self._high = min(self._low, low), max(self._high, high)
        self._zeros += int(finite.size - np.count_nonzero(finite))
        self._whole = self._whole and (array.dtype.kind != "f" or bool((finite == np.rint(finite)).all()))
        self._merge(finite)
        if finite.size == array.size and array.size <= MOST_FEATURES:
            self._extent = self._extent or _Extent(array.shape)
            self._extent.add(array)

    def _finite(self, index: int, array: Array) -> npt.NDArray[Any]:
        if array.dtype.kind != "f":
            return array
        ok = np.isfinite(array)
        bad = int(array.size - np.count_nonzero(ok))
        if not bad:
            return array
        self._bad += bad
        self._bad_at.add(index)
        return array[ok]

    def _merge(self, values: npt.NDArray[Any]) -> None:
        """Combine mean and squares of two parts (Chan et al., 1979)."""
        n, mean = values.size, float(values.mean(dtype=np.float64))
        squares = float(values.var(dtype=np.float64)) * n
        self._levels.append(mean)
        self._contrasts.append(math.sqrt(squares / n))
        apart, total = mean - self._mean, self._count + n
        self._mean += apart * n / total
        self._squares += squares + apart * apart * self._count * n / total
        self._count = total

    def survey(self, role: str) -> FieldSurvey:
        counted, one_shape = self._count > 0, len(self._shapes.counts) == 1
        extent = self._extent if one_shape else None
        constant = extent.constant() if extent is not None else ()
        kind = self.kinds.most_common(1)[0][0] if self.kinds else ""
        return FieldSurvey(
            name=self.name,
            role=role,
            kind=kind,
            samples=self.samples,
            shapes=self._shapes.most_common(),
            dtypes=self._dtypes.most_common(),
            low=self._low if counted else None,
            high=self._high if counted else None,
            mean=self._mean if counted else None,
            std=math.sqrt(self._squares / self._count) if counted else None,
            **self._by_sample(),
            zeros=self._zeros / self._count if counted else 0.0,
            whole=counted and self._whole,
            nonfinite=self._bad,
            nonfinite_samples=self._bad_at.count,
            nonfinite_at=self._bad_at.first,
            features=extent.size if extent is not None else 0,
            constant=len(constant),
            constant_at=tuple(int(n) for n in constant[:MOST_LISTED]),
            spread=extent.spread() if extent is not None and kind == "vector" else 1.0,
            blank=self._blank.count,
            blank_at=self._blank.first,
            empty=self._empty.count,
            empty_at=self._empty.first,
        )

    def _by_sample(self) -> dict[str, float]:
        """What is typical of single samples, regardless of a few exceptions."""
        if not self._levels:
            return {}
        levels, contrasts = np.array(self._levels), np.array(self._contrasts)
        logs = np.log(contrasts[contrasts > 0])
        return {
            "level": float(np.median(levels)),
            "level_spread": _spread(levels),
            "contrast": float(np.median(contrasts)),
            "contrast_spread": _spread(logs) if len(logs) else 0.0,
        }


def _spread(values: npt.NDArray[np.float64]) -> float:
    """The standard deviation that a normal distribution with these quartiles has."""
    quarter, three = np.quantile(values, [0.25, 0.75])
    return float(three - quarter) / 1.349


class _Indices:
    """How many, and the first of them."""

    def __init__(self) -> None:
        self.count = 0
        self._first: list[int] = []

    def add(self, index: int) -> None:
        self.count += 1
        if len(self._first) < MOST_LISTED:
            self._first.append(index)

    @property
    def first(self) -> tuple[int, ...]:
        return tuple(sorted(self._first))


class _Kinds:
    """Different values with the indices at which they first occurred."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._first: dict[str, list[int]] = {}

    def add(self, what: str, index: int) -> None:
        self.counts[what] += 1
        known = self._first.setdefault(what, []) if len(self._first) < 1000 else []
        if len(known) < FEW:
            known.append(index)

    def most_common(self) -> tuple[Count, ...]:
        return tuple(
            Count(what, n, tuple(sorted(self._first.get(what, ()))))
            for what, n in self.counts.most_common(MOST_SHAPES)
        )


class _Extent:
    """The range and spread of every feature of samples of one shape."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._shape = shape
        self.size = math.prod(shape)
        self._low = np.full(shape, np.inf)
        self._high = np.full(shape, -np.inf)
        self._sum, self._squares = np.zeros(shape), np.zeros(shape)
        self._first: npt.NDArray[np.float64] | None = None
        self._samples = 0

    def add(self, array: Array) -> None:
        if array.shape != self._shape:
            return
        values = array.astype(np.float64)
        if self._first is None:
            self._first = values
        np.minimum(self._low, values, out=self._low)
        np.maximum(self._high, values, out=self._high)
        values = values - self._first  # avoids losing the squares to a large mean
        self._sum += values
        self._squares += values * values
        self._samples += 1

    def constant(self) -> tuple[int, ...]:
        if self._samples < 2:
            return ()
        return tuple(int(n) for n in np.flatnonzero((self._low == self._high).reshape(-1)))

    def spread(self) -> float:
        """Largest over median standard deviation of the features that vary."""
        mean = self._sum / max(self._samples, 1)
        deviations = np.sqrt(np.maximum(self._squares / max(self._samples, 1) - mean * mean, 0.0))
        varying = deviations[self._low < self._high]
        if varying.size < 2:
            return 1.0
        middle = float(np.median(varying))
        return float(varying.max()) / middle if middle > 0 else 1.0


def shaped(leaf: Leaf) -> str:
    """`3×32×32`; for texts only that they are texts, since their lengths always differ."""
    if leaf.kind in ("text", "object"):
        return leaf.kind
    return "×".join(str(n) for n in leaf.shape) or "number"
