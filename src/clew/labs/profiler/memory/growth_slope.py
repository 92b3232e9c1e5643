"""Does memory grow? Fits a robust line to the readings and compares its slope with their noise.

Memory rises at the beginning of every run (allocators and caches fill up), in stairs (arenas), and
falls back at times. Only what goes on rising, in the last part of the readings as in the one before,
and by more than the readings scatter, is called growth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

WARM_UP = 0.25  # of the readings, at least, in which everything fills up
LEAST_READINGS = 16  # after it
LEAST_RISE = 4 << 20  # bytes over all steps that are judged
LEAST_SHARE = 0.005  # of the memory that there is, likewise
THIRDS = 3
FALLS_BACK = 0.5  # of the rise, from a height to any later reading, at most
STEADY = 0.4  # of the whole line's rate that each third must rise with
MOST_POINTS = 200  # pairs grow with the square

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Slope:
    """Units per step, and how far off it may be."""

    rate: float
    error: float
    first: int  # step from which on it was fitted
    last: int
    rise: float


def steady_slope(
    readings: Sequence[tuple[int, float]], least: float = LEAST_RISE, share: float = LEAST_SHARE
) -> Slope | None:
    """The growth per step after the warm-up; None unless it is clear."""
    steps, values = _settled(readings)
    if len(steps) < LEAST_READINGS or steps[-1] <= steps[0]:
        return None
    rate, error = fitted(steps, values)
    rise = rate * float(steps[-1] - steps[0])
    if rate <= 4 * error or rise < max(least, share * float(np.median(values))):
        return None
    if not _goes_on(steps, values, rate) or _falls_back(values) > FALLS_BACK * rise:
        return None
    return Slope(rate, error, int(steps[0]), int(steps[-1]), rise)


def _settled(readings: Sequence[tuple[int, float]]) -> tuple[Numbers, Numbers]:
    """The readings after the warm-up, one of each step."""
    table = np.array(sorted(dict(readings).items()), dtype=np.float64)
    table = table[int(len(table) * WARM_UP) :] if len(table) else table.reshape(0, 2)
    if len(table) > MOST_POINTS:
        table = table[np.linspace(0, len(table) - 1, MOST_POINTS).astype(int)]
    return table[:, 0], table[:, 1]


def fitted(steps: Numbers, values: Numbers) -> tuple[float, float]:
    """Theil and Sen's median of the slopes of all pairs, and its standard error from the scatter."""
    i, j = np.triu_indices(len(steps), 1)
    gaps = steps[j] - steps[i]
    rate = float(np.median((values[j] - values[i]) / np.where(gaps > 0, gaps, 1.0)))
    off = values - rate * steps
    scatter = 1.4826 * float(np.median(np.abs(off - np.median(off))))
    spread = float(np.sqrt(np.sum((steps - steps.mean()) ** 2)))
    return rate, 1.25 * scatter / spread if spread else float("inf")


def _goes_on(steps: Numbers, values: Numbers, rate: float) -> bool:
    """Whether it rose in every third: what fills up once slows down."""
    edges = np.linspace(steps[0], steps[-1], THIRDS + 1)
    for low, high in pairwise(edges):
        inside = (steps >= low) & (steps <= high)
        if inside.sum() < 3:
            return False
        rises = float(values[inside][-1] - values[inside][0])
        if rises < STEADY * rate * float(high - low):
            return False
    return True


def _falls_back(values: Numbers) -> float:
    """The deepest fall: what is given back at the end of an epoch is not lost."""
    return float(np.max(np.maximum.accumulate(values) - values))
