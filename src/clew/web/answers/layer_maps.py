"""Layers by steps: any signal with a layer map, for all layers at once."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from clew.records.facts.model_facts import LayerRow as ModuleOfModel
from clew.records.facts.model_facts import ModelFact, PrecisionFact
from clew.records.signal_types import HEADROOM, LayerHeatMap, Signal, TensorSignals
from clew.records.signals import MEASURED, SIGNALS
from clew.records.site import Site
from clew.store.index.downsampling import grouped
from clew.store.index.index_layout import Stretch
from clew.store.index.series_index import Envelope
from clew.store.write.row_blocks import Array
from clew.web.answer_shapes import (
    LayerCells,
    LayerRow,
    LayersAnswer,
    LayerStat,
    Numbers,
    StatChosen,
)
from clew.web.answers.series_catalogue import SeriesEntry, site_id, site_label
from clew.web.responses import rounded
from clew.web.runs.opened_run import OpenRun

MOST_COLUMNS = 2000
DIGITS = 4  # a colour needs no more
LARGEST = {"float16": 65504.0, "bfloat16": 3.3895313892515355e38, "float64": 1.7976931348623157e308}
FLOAT32 = 3.4028234663852886e38


def _headroom_signal(of: TensorSignals) -> Signal:
    """Computed on request, from the largest magnitude and the layer's number format."""
    meaning = "bits left until the number format overflows"
    title = f"{of.title} headroom"
    return Signal(of.headroom_name, of.group, title, meaning, "bits", layer_map=of.headroom_map)


class Stat(NamedTuple):
    """A statistic that can be mapped."""

    signal: Signal
    shown: LayerHeatMap

    @property
    def label(self) -> str:
        """Its title, and its meaning if the title does not say it."""
        title = self.signal.title[0].lower() + self.signal.title[1:]
        plain = any(self.signal in measured.signals for measured in MEASURED)
        return title if plain else f"{title}: {self.signal.meaning.partition(';')[0]}"

    def to_json(self) -> LayerStat:
        return {
            "stat": self.signal.name,
            "label": self.label,
            "unit": self.signal.unit,
            "scale": self.shown.scale,
            "good": list(self.shown.good) if self.shown.good is not None else None,
        }


STATS = sorted(
    (
        Stat(signal, signal.layer_map)
        for signal in (*SIGNALS.values(), *map(_headroom_signal, MEASURED))
        if signal.layer_map is not None
    ),
    key=lambda stat: stat.shown.position,
)
HOW = "no layer statistics were recorded: they start with the first sampled training step"


def layers_answer(
    run: OpenRun, rank: int, stat: str, lo: int | None, hi: int | None, columns: int
) -> LayersAnswer:
    """The map of one statistic, with the list of those available."""
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
        "scale": chosen.shown.scale,
    }
    return {**about, **_map(run, rank, chosen, lo, hi, columns)}


def _recorded(run: OpenRun, stat: str, rank: int) -> bool:
    prefix, _, last = stat.partition(".")
    signal = f"{prefix}.max" if last == HEADROOM else stat
    return any(e.site.module is not None for e in run.catalogue.find(signal, rank))


def _map(run: OpenRun, rank: int, chosen: Stat, lo: int | None, hi: int | None, columns: int) -> LayerCells:
    stat, partial = chosen.signal.name, chosen.shown.partial
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
    kept = np.flatnonzero(np.isfinite(means).any(axis=1) | (bad.any(axis=1) & (not partial)))
    layers = [row for _, row in sorted(rows.values(), key=lambda pair: pair[0])]
    found: LayerCells = {
        "exact": exact,
        "columns": steps.tolist(),
        "layers": [layers[i] for i in kept],
        "mean": _cells(means[kept]),
        "bad": [] if partial else _bad_cells(bad[kept]),
    }
    if not exact:
        found["min"], found["max"] = _cells(mins[kept]), _cells(maxs[kept])
    return found


def _cells(values: Array) -> list[Numbers]:
    return [rounded(row, DIGITS) for row in values]


def _bad_cells(bad: Array) -> list[tuple[int, int, int]]:
    return [(int(row), int(column), int(bad[row, column])) for row, column in np.argwhere(bad)]


def _stretches(
    run: OpenRun, rank: int, stat: str, lo: int | None, hi: int | None, columns: int
) -> list[Stretch]:
    prefix, _, last = stat.partition(".")
    if last != HEADROOM:
        return run.index.wide(stat, lo, hi, columns, rank)
    highs = run.index.wide(f"{prefix}.max", lo, hi, columns, rank)
    lows = run.index.wide(f"{prefix}.min", lo, hi, columns, rank)
    largest = _formats(run, rank, prefix)
    return [_headroom(high, low, largest) for high, low in zip(highs, lows, strict=True)]


def _headroom(high: Stretch, low: Stretch, largest: Callable[[Site], float]) -> Stretch:
    """From the largest magnitude in each stretch: the least headroom."""
    size = np.fmax(np.abs(high.envelope.maxs), np.abs(low.envelope.mins))
    limits = np.array([math.log2(largest(Site.from_json(json.loads(key)))) for key in high.sites])
    with np.errstate(divide="ignore", invalid="ignore"):
        bits = np.where(size > 0, limits[None, :] - np.log2(size), np.nan)
    counts = high.envelope.counts
    known = np.isfinite(bits)
    sums, bad = np.where(known, bits * counts, 0.0), np.where(known, 0, counts)
    return Stretch(high.sites, Envelope(high.envelope.steps, bits, bits, bad, counts, sums))


def _formats(run: OpenRun, rank: int, prefix: str) -> Callable[[Site], float]:
    """The largest number of each layer's format: as seen under autocast, or that of its parameters."""
    known: dict[tuple[str, str, str], str] = {}
    if prefix == "activation":
        for fact in run.known(PrecisionFact, rank):
            known |= {(row.root, row.module, row.op or ""): row.dtype for row in fact.items}
    else:
        for model in run.known(ModelFact, rank):
            known |= {(model.root, row.module, row.param): row.dtype for row in model.parameters}

    def largest(site: Site) -> float:
        own = (site.op if prefix == "activation" else site.param) or ""
        return LARGEST.get(known.get((site.root or "", site.module or "", own), ""), FLOAT32)

    return largest


def _columns(steps: list[Array], limit: int) -> Array:
    """The steps at which columns begin: all of them, or as many as allowed, evenly filled."""
    together = np.unique(np.concatenate([np.empty(0, np.int64), *steps]))
    return together[:: max(1, -(-len(together) // limit))] if len(together) else together


def _binned(envelope: Envelope, steps: Array) -> tuple[Array, Envelope]:
    """The columns that have values, and their values."""
    at = np.maximum(np.searchsorted(steps, envelope.steps, side="right") - 1, 0)
    starts = np.flatnonzero(np.r_[True, at[1:] != at[:-1]])
    return at[starts], grouped(envelope, starts)


def _rows(run: OpenRun, rank: int, stat: str, sites: set[str]) -> dict[str, tuple[int, LayerRow]]:
    """The row of each site: layers in forward order, each with what is known about it."""
    signal = stat.replace(HEADROOM, "max")
    with run.lock:
        entries = {
            e.site_key: e for e in run.catalogue.entries.values() if e.signal == signal and e.rank == rank
        }
        models = run.known(ModelFact, rank)
        modules = {(model.root, module.path): module for model in models for module in model.layers}
        sizes = {(model.root, w.module, w.param): w.numel for model in models for w in model.parameters}
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
    modules: dict[tuple[str, str], ModuleOfModel],
    sizes: dict[tuple[str, str, str], int],
    several: bool,
) -> LayerRow:
    site = entry.site
    root = site.root or (next(iter(modules))[0] if modules and not several else "")
    module = modules.get((root, site.module or ""))
    return {
        "site": site_id(entry.site_key),
        "key": entry.key,
        "module": site.module,
        "param": site.param,
        "op": site.op,
        "root": root or None,
        "class": module.kind if module else None,
        "label": site_label(site, several_roots=several),
        "file": module.file if module else None,
        "line": module.line if module else None,
        "depth": run.depth(site),
        "numel": sizes.get((root, site.module or "", site.param or "")),
    }
