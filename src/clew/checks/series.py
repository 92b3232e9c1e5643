"""One signal at one site, with the few methods that checks need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from clew.records.finding import Evidence
from clew.records.site import Site

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

FEW = 2_048  # values, up to which sorting is quicker than partitioning


@dataclass(frozen=True, eq=False)
class Series:
    """Values over steps, ordered by step; a step may occur more than once.

    Slices share memory, so that a window of a long series costs nothing.
    """

    signal: str
    site: Site
    steps: IntArray
    values: FloatArray

    def __len__(self) -> int:
        return len(self.values)

    @property
    def span(self) -> int:
        """How many steps it covers: fewer than values where a step has several, as in accumulation."""
        return int(self.steps[-1] - self.steps[0]) + 1 if len(self) else 0

    def _cut(self, where: slice | BoolArray) -> Series:
        return replace(self, steps=self.steps[where], values=self.values[where])

    def first(self, n: int) -> Series:
        return self._cut(slice(0, max(n, 0)))

    def last(self, n: int) -> Series:
        return self._cut(slice(max(len(self) - n, 0), None))

    def skip(self, n: int) -> Series:
        return self._cut(slice(n, None))

    def since(self, step: int) -> Series:
        return self._cut(slice(int(np.searchsorted(self.steps, step, side="left")), None))

    def before(self, step: int) -> Series:
        return self._cut(slice(0, int(np.searchsorted(self.steps, step, side="left"))))

    def finite(self) -> Series:
        keep = np.isfinite(self.values)
        return self if keep.all() else self._cut(keep)

    @property
    def median(self) -> float:
        """Of the finite values; NaN if there are none. The same holds for `min` and `max`."""
        return self._of_finite(_median)

    @property
    def min(self) -> float:
        return self._of_finite(np.min)

    @property
    def max(self) -> float:
        return self._of_finite(np.max)

    def _of_finite(self, reduce: Callable[[FloatArray], np.floating[npt.NBitBase]]) -> float:
        values = self.finite().values
        return float(reduce(values)) if len(values) else float("nan")

    def share_above(self, limit: float) -> float:
        """Share of all values that exceed the limit; NaN never does."""
        return self._share(self.values > limit)

    def share_below(self, limit: float) -> float:
        return self._share(self.values < limit)

    def _share(self, hits: BoolArray) -> float:
        return float(np.count_nonzero(hits)) / len(self) if len(self) else 0.0

    def first_nonfinite(self) -> int | None:
        """The step of the first NaN or infinity."""
        bad = ~np.isfinite(self.values)
        return int(self.steps[int(np.argmax(bad))]) if bad.any() else None

    def onset(self, bad: BoolArray, sustained: float = 0.9) -> int | None:
        """The first step from which at least a share of `sustained` is bad, up to the end."""
        counts = np.cumsum(bad[::-1])[::-1]
        lengths = np.arange(len(bad), 0, -1)
        starts = bad & (counts >= sustained * lengths)
        return int(self.steps[int(np.argmax(starts))]) if starts.any() else None

    def evidence(self, text: str, n: int = 60) -> Evidence:
        """The series as evidence: at most n points, including the smallest and the largest."""
        kept = self._cut(self._thinned(n))
        return Evidence(
            text=text,
            signal=self.signal,
            site=self.site,
            steps=tuple(int(s) for s in kept.steps),
            values=tuple(float(v) for v in kept.values),
        )

    def _thinned(self, n: int) -> slice | BoolArray:
        if len(self) <= n:
            return slice(None)
        keep = np.zeros(len(self), dtype=np.bool_)
        keep[np.linspace(0, len(self) - 1, max(n - 2, 2)).astype(np.int64)] = True
        finite = np.isfinite(self.values)
        if finite.any():
            keep[int(np.argmin(np.where(finite, self.values, np.inf)))] = True
            keep[int(np.argmax(np.where(finite, self.values, -np.inf)))] = True
        return keep


def _median(values: FloatArray) -> np.floating[npt.NBitBase]:
    """As `np.median`, which takes ten times as long for a window of a few hundred values."""
    count = len(values)
    ordered = np.sort(values) if count <= FEW else np.partition(values, [(count - 1) // 2, count // 2])
    middle: np.floating[npt.NBitBase] = (ordered[(count - 1) // 2] + ordered[count // 2]) / 2
    return middle
