"""Layers by steps: any statistic of all layers as one map, and a layer's histograms over time."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from clew.checks.evidence.recorded_facts import rows as rows_in
from clew.checks.evidence.recorded_facts import text, whole
from clew.records.signal_types import HISTOGRAM, Signal, TensorSignals
from clew.records.signals import (
    ACTIVATION,
    ACTIVATION_DEAD_FRACTION,
    ACTIVATION_SATURATED,
    GRADIENT,
    MEASURED,
    UPDATE,
    UPDATE_RATIO,
    WEIGHT,
)
from clew.records.site import Site
from clew.store.index.pyramid import grouped
from clew.store.index.series_index import Envelope, site_key
from clew.store.index.wide_read import Stretch
from clew.store.write.row_blocks import Array
from clew.web.answer_shapes import (
    HistogramHead,
    HistogramsAnswer,
    LayerCells,
    LayerRow,
    LayersAnswer,
    LayerStat,
    Numbers,
    ScaleWord,
    StatChosen,
)
from clew.web.answers.series_catalogue import SeriesEntry
from clew.web.answers.signed_histograms import has_signed, signed_histograms
from clew.web.runs.opened_run import OpenRun
from clew.web.series_names import site_id, site_json, site_label
from clew.web.strict_json import rounded

BINS = 32
LOWEST = -23  # bin 0 is everything below 2 ** LOWEST
MOST_COLUMNS = 2000
DIGITS = 4  # a colour needs no more
LARGEST = {"float16": 65504.0, "bfloat16": 3.3895313892515355e38, "float64": 1.7976931348623157e308}
FLOAT32 = 3.4028234663852886e38


class Stat(NamedTuple):
    """A statistic that can be mapped."""

    signal: Signal
    scale: ScaleWord
    good: tuple[float, float] | None = None  # where it usually lies when all is well

    @property
    def label(self) -> str:
        """Its title, and what it means where the title does not say it."""
        title = self.signal.title[0].lower() + self.signal.title[1:]
        own = self.signal.name in EXPLAINED
        return f"{title}: {self.signal.meaning.partition(';')[0]}" if own else title

    def to_json(self) -> LayerStat:
        good = list(self.good) if self.good is not None else None
        return {
            "stat": self.signal.name,
            "label": self.label,
            "unit": self.signal.unit,
            "scale": self.scale,
            "good": good,
        }


def _headroom_signal(of: TensorSignals) -> Signal:
    """Made when it is asked for, from the largest magnitude and the layer's number format."""
    meaning = "bits left until the number format overflows"
    return Signal(f"{of.prefix}.headroom", of.group, f"{of.title} headroom", meaning, "bits")


STATS = (
    Stat(GRADIENT.norm, "log"),
    Stat(UPDATE_RATIO, "log", (1e-4, 1e-2)),
    Stat(ACTIVATION_DEAD_FRACTION, "share", (0, 0.4)),
    Stat(ACTIVATION.std, "log"),
    Stat(ACTIVATION.mean, "diverging"),
    Stat(ACTIVATION_SATURATED, "share", (0, 0.4)),
    Stat(_headroom_signal(ACTIVATION), "linear"),
    Stat(_headroom_signal(GRADIENT), "linear"),
    Stat(ACTIVATION.zeros, "share"),
    Stat(ACTIVATION.nonfinite, "log"),
    Stat(GRADIENT.std, "log"),
    Stat(GRADIENT.zeros, "share"),
    Stat(GRADIENT.nonfinite, "log"),
    Stat(WEIGHT.norm, "log"),
    Stat(WEIGHT.std, "log"),
    Stat(UPDATE.norm, "log"),
)
EXPLAINED = {stat.signal.name for stat in STATS} - {name for entry in MEASURED for name in entry.names}
HOW = "no layer statistics were recorded: they start with the first sampled training step"


def layers_answer(
    run: OpenRun, rank: int, stat: str, lo: int | None, hi: int | None, columns: int
) -> LayersAnswer:
    """The map of one statistic, with the list of those offered."""
    with run.lock:
        offered = [s for s in STATS if _recorded(run, s.signal.name, rank)]
    if not offered:
        return {"missing": HOW, "stats": []}
    listed = [s.to_json() for s in offered]
    chosen = next((s for s in offered if s.signal.name == stat), None if stat else offered[0])
    if chosen is None:
        return {"missing": f"{stat} was not recorded in this run", "stats": listed}
    signal = chosen.signal
    about: StatChosen = {
        "stats": listed,
        "stat": signal.name,
        "unit": signal.unit,
        "scale": chosen.scale,
    }
    return {**about, **_map(run, rank, signal.name, lo, hi, columns)}


def _recorded(run: OpenRun, stat: str, rank: int) -> bool:
    prefix, _, last = stat.partition(".")
    signal = f"{prefix}.max" if last == "headroom" else stat
    return any(e.site.module is not None for e in run.catalogue.find(signal, rank))


def _map(run: OpenRun, rank: int, stat: str, lo: int | None, hi: int | None, columns: int) -> LayerCells:
    stretches = _stretches(run, rank, stat, lo, hi, columns)
    steps = _columns([stretch.envelope.steps for stretch in stretches], columns)
    rows = _rows(run, rank, stat, {site for stretch in stretches for site in stretch.sites})
    shape = (len(rows), len(steps))
    mins, maxs = np.full(shape, np.nan), np.full(shape, np.nan)
    sums, finite, bad = np.zeros(shape), np.zeros(shape), np.zeros(shape, np.int64)
    exact = True
    for stretch in stretches:
        at, envelope = _binned(stretch.envelope, steps)
        exact = exact and bool((envelope.counts <= 1).all())
        index = np.array([rows[site][0] for site in stretch.sites])
        place = np.ix_(index, at)
        mins[place] = np.fmin(mins[place], envelope.mins.T)
        maxs[place] = np.fmax(maxs[place], envelope.maxs.T)
        sums[place] += envelope.sums.T
        finite[place] += (envelope.counts - envelope.bad).T
        bad[place] += envelope.bad.T
    means = np.where(finite > 0, sums / np.maximum(finite, 1), np.nan)
    kept = np.flatnonzero(np.isfinite(means).any(axis=1) | (bad.any(axis=1) & ~_by_design(stat)))
    layers = [row for _, row in sorted(rows.values(), key=lambda pair: pair[0])]
    found: LayerCells = {
        "exact": exact,
        "columns": steps.tolist(),
        "layers": [layers[i] for i in kept],
        "mean": _cells(means[kept]),
        "bad": [] if _by_design(stat) else _bad_cells(bad[kept]),
    }
    if not exact:
        found["min"], found["max"] = _cells(mins[kept]), _cells(maxs[kept])
    return found


def _cells(values: Array) -> list[Numbers]:
    return [rounded(row, DIGITS) for row in values]


def _bad_cells(bad: Array) -> list[tuple[int, int, int]]:
    return [(int(row), int(column), int(bad[row, column])) for row, column in np.argwhere(bad)]


def _by_design(stat: str) -> bool:
    """Statistics that are NaN wherever they mean nothing: dead units of a layer without a ReLU."""
    return stat.endswith((".dead_fraction", ".saturated", ".headroom"))


def _stretches(
    run: OpenRun, rank: int, stat: str, lo: int | None, hi: int | None, columns: int
) -> list[Stretch]:
    prefix, _, last = stat.partition(".")
    if last != "headroom":
        return run.index.wide(stat, lo, hi, columns, rank)
    highs = run.index.wide(f"{prefix}.max", lo, hi, columns, rank)
    lows = run.index.wide(f"{prefix}.min", lo, hi, columns, rank)
    largest = _formats(run, rank, prefix)
    return [_headroom(high, low, largest) for high, low in zip(highs, lows, strict=True)]


def _headroom(high: Stretch, low: Stretch, largest: Callable[[Site], float]) -> Stretch:
    """Of the largest magnitude in each stretch: the least that was left."""
    size = np.fmax(np.abs(high.envelope.maxs), np.abs(low.envelope.mins))
    limits = np.array([math.log2(largest(Site.from_json(json.loads(key)))) for key in high.sites])
    with np.errstate(divide="ignore", invalid="ignore"):
        bits = np.where(size > 0, limits[None, :] - np.log2(size), np.nan)
    counts = high.envelope.counts
    known = np.isfinite(bits)
    sums, bad = np.where(known, bits * counts, 0.0), np.where(known, 0, counts)
    return Stretch(high.sites, Envelope(high.envelope.steps, bits, bits, bad, counts, sums))


def _formats(run: OpenRun, rank: int, prefix: str) -> Callable[[Site], float]:
    """The largest number of each layer's format: as autocast showed it, or as its parameters are kept."""
    known: dict[tuple[str, str, str], str] = {}
    kind, listed, last = (
        ("precision", "items", "op") if prefix == "activation" else ("model", "parameters", "param")
    )
    for fact in run.facts(kind, rank):
        for row in rows_in(fact.data.get(listed)):
            root = text(row.get("root")) or text(fact.data.get("root")) or ""
            known[root, text(row.get("module")) or "", text(row.get(last)) or ""] = (
                text(row.get("dtype")) or ""
            )

    def largest(site: Site) -> float:
        own = (site.op if prefix == "activation" else site.param) or ""
        return LARGEST.get(known.get((site.root or "", site.module or "", own), ""), FLOAT32)

    return largest


def _columns(steps: list[Array], limit: int) -> Array:
    """The steps at which columns begin: all of them, or as many as may be, evenly filled."""
    together = np.unique(np.concatenate([np.empty(0, np.int64), *steps]))
    return together[:: max(1, -(-len(together) // limit))] if len(together) else together


def _binned(envelope: Envelope, steps: Array) -> tuple[Array, Envelope]:
    """The columns that have something, and what they have."""
    at = np.maximum(np.searchsorted(steps, envelope.steps, side="right") - 1, 0)
    starts = np.flatnonzero(np.r_[True, at[1:] != at[:-1]])
    return at[starts], grouped(envelope, starts)


def _rows(run: OpenRun, rank: int, stat: str, sites: set[str]) -> dict[str, tuple[int, LayerRow]]:
    """For each site its row: layers in forward order, each with what is known of it."""
    signal = stat.replace("headroom", "max")
    with run.lock:
        entries = {
            e.site_key: e for e in run.catalogue.entries.values() if e.signal == signal and e.rank == rank
        }
        modules, sizes = run.modules(rank), _sizes(run, rank)
        roots = {root for root, _ in modules}
        chosen = [
            entries[site] for site in sites if site in entries and entries[site].site.module is not None
        ]
        order = sorted(
            chosen, key=lambda e: (run.depth(e.site), e.site.module or "", _param_order(e), e.site_key)
        )
        return {e.site_key: (i, _row(e, run, modules, sizes, len(roots) > 1)) for i, e in enumerate(order)}


def _param_order(entry: SeriesEntry) -> tuple[int, str]:
    return (0 if entry.site.param == "weight" else 1), entry.site.param or ""


def _row(
    entry: SeriesEntry,
    run: OpenRun,
    modules: dict[tuple[str, str], dict[str, Any]],
    sizes: dict[tuple[str, str, str], int],
    several: bool,
) -> LayerRow:
    site = entry.site
    root = site.root or (next(iter(modules))[0] if modules and not several else "")
    module = modules.get((root, site.module or ""), {})
    return {
        "site": site_id(entry.site_key),
        "key": entry.key,
        "module": site.module,
        "param": site.param,
        "op": site.op,
        "root": root or None,
        "class": text(module.get("class")),
        "label": site_label(site, several_roots=several),
        "file": text(module.get("file")),
        "line": whole(module.get("line")),
        "depth": run.depth(site),
        "numel": sizes.get((root, site.module or "", site.param or "")),
    }


def _sizes(run: OpenRun, rank: int) -> dict[tuple[str, str, str], int]:
    found: dict[tuple[str, str, str], int] = {}
    for fact in run.facts("model", rank):
        for row in rows_in(fact.data.get("parameters")):
            key = (
                text(fact.data.get("root")) or "",
                text(row.get("module")) or "",
                text(row.get("param")) or "",
            )
            found[key] = whole(row.get("numel")) or 0
    return found


def histograms_answer(
    run: OpenRun,
    rank: int,
    site: str,
    stat: str,
    lo: int | None,
    hi: int | None,
    columns: int,
    kind: str = "",
) -> HistogramsAnswer:
    """The shares of a layer's values in each power of two, over time; without a site, which there are."""
    with run.lock:
        found = _histogram_sites(run, rank)
    if not found:
        return {"missing": "no histograms were recorded: they come with the layer statistics"}
    if not site:
        return {
            "sites": [
                {"site": s, "label": _label(e), "stats": sorted(stats)} for s, (e, stats) in found.items()
            ]
        }
    if site not in found:
        return {"missing": "no histograms of this layer were recorded"}
    entry, stats = found[site]
    listed = sorted(stats)
    chosen = stat if stat in stats else listed[0]
    if stat and stat not in stats:
        return {"missing": f"no {stat} histograms of this layer were recorded", "stats": listed}
    with run.lock:
        both = has_signed(run, rank, chosen, entry.site_key)
    about: HistogramHead = {
        "stats": listed,
        "stat": chosen,
        "site": site_json(entry.site),
        "site_id": site,
        "label": _label(entry),
        "kinds": ["linear", "log2"] if both else ["log2"],
    }
    if both and kind == "linear":
        return {**about, **signed_histograms(run, rank, chosen, entry.site_key, lo, hi)}
    bins = [
        run.index.query(f"{chosen}.log2hist.{k:02d}", entry.site_key, lo, hi, columns, rank)
        for k in range(BINS)
    ]
    counts = np.stack([envelope.means() for envelope in bins], axis=1) / 255.0
    totals = counts.sum(axis=1, keepdims=True)
    shares = np.divide(counts, totals, out=np.zeros_like(counts), where=totals > 0)  # rounding to 255ths
    return {
        **about,
        "kind": "log2",
        "edges": list(range(LOWEST, LOWEST + BINS - 1)),
        "steps": bins[0].steps.tolist(),
        "counts": [rounded(row, DIGITS) for row in shares],
        "exact": bool((bins[0].counts <= 1).all()),
    }


def _histogram_sites(run: OpenRun, rank: int) -> dict[str, tuple[SeriesEntry, set[str]]]:
    found: dict[str, tuple[SeriesEntry, set[str]]] = {}
    for entry in run.catalogue.entries.values():
        match = HISTOGRAM.fullmatch(entry.signal) if entry.rank == rank else None
        if match and match[2] == "00":
            known = found.setdefault(site_id(entry.site_key), (entry, set()))
            known[1].add(match[1])
    return dict(sorted(found.items(), key=lambda item: (run.depth(item[1][0].site), _label(item[1][0]))))


def _label(entry: SeriesEntry) -> str:
    return site_label(entry.site) or site_key(entry.site)
