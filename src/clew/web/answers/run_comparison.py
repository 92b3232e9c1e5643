"""Compares runs side by side: settings, results and findings."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from clew.records.facts.run_facts import GitFact
from clew.records.signal_types import Signal
from clew.records.signals import LOSSES, METRIC, METRICS
from clew.store.index.series_index import Envelope
from clew.web.answer_shapes import (
    SEVERITIES,
    CompareAnswer,
    FindingRow,
    MetricCell,
    MetricRow,
    MetricSpread,
    SettingRow,
    SharedSignal,
)
from clew.web.answers.run_rows import row
from clew.web.answers.series_catalogue import SeriesEntry
from clew.web.runs.judge_process import Judgement
from clew.web.runs.opened_run import OpenRun
from clew.web.runs.run_library import Glance

MOST_RUNS = 50
TAIL = 100  # last points of a metric whose spread is its noise

Named = tuple[str, Glance, Judgement]
Opener = Callable[[str], AbstractContextManager[OpenRun]]


def compare_answer(runs: Sequence[Named], open_run: Opener) -> CompareAnswer:
    rows = [row(*named) for named in runs]
    metrics: list[dict[str, MetricCell | None]] = []
    keys: list[dict[str, tuple[Signal, str]]] = []
    versions: list[dict[str, Any]] = []
    for name, glance, _ in runs:
        if glance.info is None:
            metrics.append({})
            keys.append({})
            versions.append({})
            continue
        with open_run(name) as run, run.lock:
            metrics.append(_metrics(run))
            keys.append(_shared_keys(run))
            versions.append(_versions(run))
    return {
        "runs": rows,
        "config": differences([r["hparams"] or {} for r in rows]),
        "metrics": _metric_rows(metrics),
        "findings": _finding_rows([judged for _, _, judged in runs]),
        "signals": _signal_rows(keys),
        "versions": differences(versions),
    }


def differences(settings: Sequence[dict[str, Any]]) -> list[SettingRow]:
    """Every setting of any run, those that differ first."""
    names = list(dict.fromkeys(name for values in settings for name in values))
    found: list[SettingRow] = []
    for name in names:
        values = [each.get(name) for each in settings]
        found.append({"name": name, "values": values, "same": all(v == values[0] for v in values)})
    return sorted(found, key=lambda entry: entry["same"])


def _versions(run: OpenRun) -> dict[str, Any]:
    found = run.versions()
    for fact in run.known(GitFact):
        found["commit"] = fact.commit
    return found


def _metrics(run: OpenRun) -> dict[str, MetricCell | None]:
    """Loss and metrics by label: last value, extremes, and the noise of the tail."""
    found: dict[str, MetricCell | None] = {}
    for entry in run.catalogue.search(rank=run.rank(None), hist=False):
        if entry.known.group in (LOSSES, METRICS):
            label = entry.label.removeprefix(METRIC.member(""))
            found.setdefault(label, numbers(run, entry))
    return found


def numbers(run: OpenRun, entry: SeriesEntry) -> MetricCell | None:
    whole = run.query(entry, None, None, 1)
    if not len(whole.steps) or whole.counts[0] == whole.bad[0]:
        return None
    ends = run.query(entry, None, None, 2000)
    points = int(whole.counts[0])
    size = min(TAIL, max(1, points // 10))
    tail = _tail(run, entry, ends, size)
    finite = tail.mins[np.isfinite(tail.mins)]
    last = float(tail.mins[-1])
    return {
        "last": last if math.isfinite(last) else None,
        "min": float(whole.mins[0]),
        "max": float(whole.maxs[0]),
        "mean_tail": float(finite.mean()) if len(finite) else None,
        "std_tail": float(finite.std()) if len(finite) else None,
        "tail": len(tail.mins),
        "step": int(tail.steps[-1]),
    }


def _tail(run: OpenRun, entry: SeriesEntry, ends: Envelope, size: int) -> Envelope:
    """The last points, exactly: the buckets at the end of an overview show where they begin."""
    behind = np.cumsum(ends.counts[::-1])[::-1]
    at = int(np.flatnonzero(behind >= size)[-1]) if behind[0] >= size else 0
    tail = run.query(entry, int(ends.steps[at]), None, max(int(behind[at]) * 2, size * 2))
    return Envelope(*(array[-size:] for array in tail))


def _metric_rows(metrics: Sequence[dict[str, MetricCell | None]]) -> list[MetricRow]:
    names = list(dict.fromkeys(name for each in metrics for name in each))
    found: list[MetricRow] = []
    for name in names:
        values = [each.get(name) for each in metrics]
        last = [v["last"] for v in values if v is not None and v["last"] is not None]
        found.append({"name": name, "values": values, "spread": _spread(last)})
    return found


def _spread(values: Sequence[float]) -> MetricSpread | None:
    if not values:
        return None
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return {
        "min": min(values),
        "max": max(values),
        "mean": statistics.fmean(values),
        "std": deviation,
        "n": len(values),
    }


def _finding_rows(judged: Sequence[Judgement]) -> list[FindingRow]:
    """One row per check that found something in any run, worst first."""
    found: dict[str, FindingRow] = {}
    for at, each in enumerate(judged):
        for index, finding in enumerate(each.digest.findings):
            entry = found.setdefault(
                finding["check"],
                {"check": finding["check"], "id": finding["id"], "runs": [None] * len(judged)},
            )
            entry["runs"][at] = {
                "severity": finding["severity"],
                "message": finding["message"],
                "root": not finding["because"],
                "index": index,
            }
    return sorted(found.values(), key=_badness)


def _badness(row: FindingRow) -> int:
    return min(SEVERITIES.index(cell["severity"]) for cell in row["runs"] if cell)


def _shared_keys(run: OpenRun) -> dict[str, tuple[Signal, str]]:
    """By label, the signal and key of every series that is not a layer's."""
    found: dict[str, tuple[Signal, str]] = {}
    for entry in run.catalogue.search(rank=run.rank(None), hist=False):
        if entry.known.group.compared:
            found.setdefault(entry.label, (entry.known, entry.key))
    return found


def _signal_rows(keys: Sequence[dict[str, tuple[Signal, str]]]) -> list[SharedSignal]:
    labels = list(dict.fromkeys(label for each in keys for label in each))
    found: list[SharedSignal] = []
    for label in labels:
        cells = [each.get(label) for each in keys]
        known = [cell for cell in cells if cell is not None]
        if len(known) > 1:
            signal = known[0][0]
            row_keys = [cell[1] if cell is not None else None for cell in cells]
            place = signal.chart.compared if signal.chart is not None else None
            found.append(
                {
                    "signal": signal.name,
                    "label": label,
                    "unit": signal.unit,
                    "place": place,
                    "keys": row_keys,
                }
            )
    return found
