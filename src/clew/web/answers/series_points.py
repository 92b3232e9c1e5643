"""Answers about series: the list of them, and their points at any zoom."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from clew.store.index.series_index import Envelope
from clew.web.answer_shapes import (
    DrawnSeries,
    MissingSeries,
    NamedSeries,
    SeriesAnswer,
    SeriesValues,
    SignalList,
)
from clew.web.answers.axes import StepAxis
from clew.web.answers.series_catalogue import SeriesEntry, groups_of
from clew.web.runs.opened_run import OpenRun
from clew.web.series_names import site_json
from clew.web.strict_json import marks, rounded

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
    """The series of these keys between two places on the axis."""
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
    """Extremes, means and what is bad; single points are sent once."""
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
