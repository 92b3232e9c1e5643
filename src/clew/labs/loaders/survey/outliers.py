"""Finds outliers: a few samples with a clear gap to the rest. A long tail is not a fault."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from clew.labs.loaders.field_values import Leaf
from clew.labs.loaders.survey.near_copies import Sketches
from clew.records.dataset_survey import FieldSurvey, Outlier

FEWEST = 50  # samples, below which none is called unusual
MOST = 0.01  # of the samples: more than that are a category of their own
FEW_BLANK = 0.01  # share of blank samples up to which they count as unusual
ORDERS = 1.0  # powers of ten from the median, of scales and lengths
APART = 3.0  # times as far as the farthest of the others, in powers of ten
GAP = 10.0  # times as far as the farthest of the others, of single values
QUARTILES = 10.0  # distances between the quartiles
DIFFERENT = 10  # values of a column, below which it is categorical

Floats = npt.NDArray[np.float64]


class SampleSizes:
    """The scale and the length of the main input of every sample."""

    def __init__(self) -> None:
        self.indices: list[int] = []
        self._scales: list[float] = []
        self._lengths: list[float] = []

    def add(self, index: int, main: Leaf | None) -> None:
        self.indices.append(index)
        self._scales.append(scale_of(main))
        self._lengths.append(float(main.shape[0]) if main is not None and is_sequence(main) else 0.0)

    def outliers(self, main: FieldSurvey) -> Iterator[Outlier]:
        """Samples whose main input is far larger or smaller than the others, blank or empty."""
        if main.kind in ("image", "wave", "array"):
            yield from by_size(self.indices, self._scales, "scale", main.name)
            if main.blank <= max(FEW_BLANK * len(self.indices), 1):
                yield from (Outlier(i, "blank", main.name) for i in main.blank_at)
        if len(main.shapes) > 1 or main.kind == "text":
            yield from by_size(self.indices, self._lengths, "length", main.name)
        yield from (Outlier(i, "empty", main.name) for i in main.empty_at)


def scale_of(leaf: Leaf | None) -> float:
    """Root mean square of the finite values."""
    if leaf is None or leaf.array is None or not leaf.array.size or leaf.kind == "tokens":
        return 0.0
    values = leaf.array.astype(np.float64, copy=False)
    values = values[np.isfinite(values)]
    return float(np.sqrt(np.mean(values * values))) if values.size else 0.0


def is_sequence(leaf: Leaf) -> bool:
    return leaf.kind in ("tokens", "text", "wave") or (
        leaf.kind in ("vector", "array") and len(leaf.shape) > 0
    )


def unusual_columns(kept: Sketches, main: FieldSurvey) -> Iterator[Outlier]:
    """Single numbers of a table, column by column."""
    if main.kind != "vector" or len({s.size for s in kept.sketches}) != 1:
        return
    table = np.stack(kept.sketches).astype(np.float64)
    if table.shape[1] != main.features:
        return  # projections, not columns
    indices = [kept.indices[n] for n in kept.sketched]
    for column in range(table.shape[1]):
        yield from by_value(indices, table[:, column], main.name, column)


def unusual_targets(field: str, given: Mapping[int, str]) -> list[Outlier]:
    """Targets that are numbers."""
    try:
        values = np.array([float(v) for v in given.values()])
    except ValueError:
        return []
    return by_value(list(given), values, field)


def by_size(indices: Sequence[int], sizes: Sequence[float], why: str, field: str) -> list[Outlier]:
    """Scales or lengths that are far from the others, in powers of ten."""
    known = np.array([s > 0 and np.isfinite(s) for s in sizes], dtype=bool)
    where, values = np.flatnonzero(known), np.array(sizes, dtype=np.float64)[known]
    if len(values) < FEWEST:
        return []
    logs = np.log10(values)
    middle = float(np.median(logs))
    count, farthest = _beyond(np.abs(logs - middle), APART, ORDERS)
    worst = np.argsort(-np.abs(logs - middle), kind="stable")[:count]
    edge = middle + farthest  # reported as the farthest of the others, on the side of the first
    if count and logs[worst[0]] < middle:
        edge = middle - farthest
    return [
        Outlier(int(indices[where[n]]), why, field, float(values[n]), 10.0**middle, 10.0**edge) for n in worst
    ]


def by_value(indices: Sequence[int], values: Floats, field: str, feature: int | None = None) -> list[Outlier]:
    """Single numbers (of a column, or targets) with a gap between them and all others."""
    where = np.flatnonzero(np.isfinite(values))
    finite = values[where]
    if len(finite) < FEWEST or len(np.unique(finite[:2000])) < DIFFERENT:
        return []
    middle = float(np.median(finite))
    quarter, three = np.quantile(finite, [0.25, 0.75])
    if three <= quarter:
        return []
    distances = np.abs(finite - middle)
    count, _ = _beyond(distances, GAP, QUARTILES * float(three - quarter))
    worst = np.argsort(-distances, kind="stable")
    rest = finite[worst[count]]
    return [
        Outlier(int(indices[where[n]]), "range", field, float(finite[n]), middle, float(rest), feature)
        for n in worst[:count]
    ]


def _beyond(distances: Floats, times: float, least: float) -> tuple[int, float]:
    """How many of the largest distances are beyond a gap, and the largest of the others."""
    ordered = np.sort(distances)[::-1]
    most = max(int(MOST * len(ordered)), 1)
    for count in range(most, 0, -1):
        inner, outer = float(ordered[count]), float(ordered[count - 1])
        if outer >= least and outer >= times * inner and inner > 0:
            return count, inner
    return 0, float(ordered[0])
