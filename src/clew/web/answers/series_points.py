"""Answers about series: the list of them, and their points at any zoom, by step, time or epoch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from clew.records.signals import WALL
from clew.store.index.series_index import Envelope
from clew.store.write.row_blocks import Array
from clew.web.answer_shapes import (
    AxesOffered,
    AxisWord,
    DrawnSeries,
    MissingSeries,
    NamedSeries,
    SeriesAnswer,
    SeriesValues,
    SignalList,
)
from clew.web.answers.series_catalogue import SeriesEntry, groups_of, site_json
from clew.web.responses import marks, rounded
from clew.web.runs.opened_run import OpenRun

MOST_KEYS = 50
MOST_POINTS = 20_000
MOST_SIGNALS = 5000


def signals_answer(
    run: OpenRun, rank: int | None, search: str, group: str, keys: Sequence[str], hist: bool, page: slice
) -> SignalList:
    """A page of the list of series."""
    with run.lock:
        found = run.catalogue.search(search, keys=keys, rank=rank, hist=hist)
        groups = groups_of(found)
        found = run.catalogue.search(search, group, keys, rank=rank, hist=hist) if group else found
        extents = run.catalogue.extents
        return {
            "total": len(found),
            "offset": page.start,
            "groups": groups,
            "signals": [entry.to_json(extents) for entry in found[page]],
        }


def series_answer(
    run: OpenRun, keys: Sequence[str], axis: StepAxis, span: tuple[float | None, float | None], points: int
) -> SeriesAnswer:
    """The series of these keys between two positions on the axis."""
    lo, hi = axis.step(span[0], upper=False), axis.step(span[1], upper=True)
    found: list[DrawnSeries | MissingSeries] = []
    for key in keys:
        entry = run.catalogue.entries.get(key)
        if entry is None:
            found.append({"key": key, "missing": "no such series in this run"})
        else:
            found.append(one_series(run, entry, axis, lo, hi, points))
    return {"x": axis.kind, "from": span[0], "to": span[1], "series": found}


def one_series(
    run: OpenRun, entry: SeriesEntry, axis: StepAxis, lo: int | None, hi: int | None, points: int
) -> DrawnSeries:
    envelope = run.query(entry, lo, hi, points)
    steps = envelope.steps.tolist()
    return {
        **named(entry),
        **shape(envelope),
        "x": steps if axis.kind == "step" else rounded(axis.places(envelope.steps)),
        "steps": steps,
    }


def named(entry: SeriesEntry) -> NamedSeries:
    return {
        "key": entry.key,
        "signal": entry.signal,
        "site": site_json(entry.site),
        "label": entry.label,
        "unit": entry.known.unit,
    }


def shape(envelope: Envelope) -> SeriesValues:
    """Extremes, means and non-finite points; single points are sent once."""
    total = int(envelope.counts.sum())
    exact = total == len(envelope.steps)
    found: SeriesValues
    if exact:
        points = rounded(envelope.mins)
        found = {"exact": exact, "total": total, "mean": points, "marks": marks(envelope.mins)}
    else:
        found = {
            "exact": exact,
            "total": total,
            "min": rounded(envelope.mins),
            "max": rounded(envelope.maxs),
            "mean": rounded(envelope.means()),
            "count": envelope.counts.tolist(),
            "marks": [],
        }
    if np.any(envelope.bad):
        found["bad"] = envelope.bad.tolist()
    return found


# ---- axes ------------------------------------------------------------------------------------

AXES: tuple[AxisWord, ...] = ("step", "wall", "epoch")
FINE = 4000  # points of the clock used to look up times; interpolated linearly between them


class StepAxis:
    """Converts steps to positions on an axis, and back."""

    def __init__(self, run: OpenRun, kind: AxisWord, rank: int) -> None:
        self.kind = kind
        self._run, self._rank = run, rank
        self._clock = run.only(WALL, rank) if kind == "wall" else None
        per_epoch = run.steps_per_epoch(rank) if kind == "epoch" else None
        self._per_epoch = per_epoch[0] if per_epoch else None

    @property
    def known(self) -> bool:
        return self.kind == "step" or self._clock is not None or self._per_epoch is not None

    def places(self, steps: Array) -> Array:
        """The positions of these steps."""
        if self._per_epoch is not None:
            return np.asarray(steps / self._per_epoch)
        if self._clock is None or not len(steps):
            return steps
        envelope = self._run.query(self._clock, int(steps[0]), int(steps[-1]), FINE)
        if not len(envelope.steps):
            return np.full(len(steps), np.nan)
        # The clock never goes back, so a bucket's minimum is that of its first step.
        return np.interp(steps, envelope.steps, envelope.mins)

    def step(self, place: float | None, *, upper: bool) -> int | None:
        """The last step at or before a position (`upper`), or the first at or after it."""
        if place is None:
            return None
        if self._per_epoch is not None:
            place = place * self._per_epoch
        elif self._clock is not None:
            return self._moment(place, upper)
        return int(np.floor(place)) if upper else int(np.ceil(place))

    def _moment(self, seconds: float, upper: bool) -> int:
        """Zoom in until each bucket is one step."""
        assert self._clock is not None
        lo: int | None = None
        hi: int | None = None
        while True:
            clock = self._run.query(self._clock, lo, hi, FINE)
            if not len(clock.steps):
                return 0
            at = max(int(np.searchsorted(clock.mins, seconds, side="right")) - 1, 0)
            if clock.counts[at] <= 1:
                return self._one(clock.steps, clock.mins, at, seconds, upper)
            lo = int(clock.steps[at])
            hi = int(clock.steps[at + 1]) if at + 1 < len(clock.steps) else hi

    @staticmethod
    def _one(steps: Array, times: Array, at: int, seconds: float, upper: bool) -> int:
        if upper:
            return int(steps[at]) if times[at] <= seconds else int(steps[at]) - 1
        if times[at] >= seconds:
            return int(steps[at])
        return int(steps[at + 1]) if at + 1 < len(steps) else int(steps[at]) + 1


def axes_offered(run: OpenRun, rank: int) -> AxesOffered:
    """The axes of this run, with their ranges."""
    span = run.span(rank)
    first, last = span if span is not None else (0, 0)
    ends = np.array([first, last])
    wall = StepAxis(run, "wall", rank)
    per_epoch = run.steps_per_epoch(rank)
    found: AxesOffered = {"step": {"first": first, "last": last}, "wall": None, "epoch": None}
    if wall.known and span is not None:
        places = wall.places(ends)
        if np.isfinite(places).all():
            found["wall"] = {"first": float(places[0]), "last": float(places[1])}
    if per_epoch is not None:
        steps, source = per_epoch
        found["epoch"] = {"first": first / steps, "last": last / steps, "steps": steps, "source": source}
    return found
