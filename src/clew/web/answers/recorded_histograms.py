"""A layer's histograms over time: bins of powers of two, and signed bins of values where recorded."""

from __future__ import annotations

import numpy as np

from clew.records.signal_types import HISTOGRAM
from clew.store.index.series_index import site_key
from clew.store.write.row_blocks import Array
from clew.web.answer_shapes import HistogramHead, HistogramsAnswer, Numbers, SignedBins
from clew.web.answers.series_catalogue import SeriesEntry, site_id, site_json, site_label
from clew.web.responses import rounded
from clew.web.runs.opened_run import OpenRun

POWERS = 32  # bins
LOWEST = -23  # bin 0 is everything below 2 ** LOWEST
SIGNED_BINS = 40
MOST_SIGNED = 1000  # steps, far more than a run has: each is its own row
DIGITS = 4  # a colour needs no more


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
    """The shares of a layer's values per power of two, over time; without a site, the layers available."""
    with run.lock:
        found = _histogram_sites(run, rank)
    if not found:
        return {"missing": "no histograms were recorded: they are recorded with the layer statistics"}
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
        both = _has_signed(run, rank, chosen, entry.site_key)
    about: HistogramHead = {
        "stats": listed,
        "stat": chosen,
        "site": site_json(entry.site),
        "site_id": site,
        "label": _label(entry),
        "kinds": ["linear", "log2"] if both else ["log2"],
    }
    if both and kind == "linear":
        return {**about, **_signed_histograms(run, rank, chosen, entry.site_key, lo, hi)}
    bins = [
        run.index.query(f"{chosen}.log2hist.{k:02d}", entry.site_key, lo, hi, columns, rank)
        for k in range(POWERS)
    ]
    counts = np.stack([envelope.means() for envelope in bins], axis=1) / 255.0
    return {
        **about,
        "kind": "log2",
        "edges": list(range(LOWEST, LOWEST + POWERS - 1)),
        "steps": bins[0].steps.tolist(),
        "counts": _shares(counts),
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


def _has_signed(run: OpenRun, rank: int, stat: str, site_key: str) -> bool:
    """Whether a layer has signed histograms."""
    return any(e.site_key == site_key for e in run.catalogue.find(f"{stat}.histogram.lo", rank))


def _signed_histograms(
    run: OpenRun, rank: int, stat: str, site_key: str, lo: int | None, hi: int | None
) -> SignedBins:
    """Range and shares in bins of equal width at every step that has them."""
    fields = ["lo", "hi", *(f"{k:02d}" for k in range(SIGNED_BINS))]
    found = [run.index.query(f"{stat}.histogram.{f}", site_key, lo, hi, MOST_SIGNED, rank) for f in fields]
    low, high, *bins = [envelope.means() for envelope in found]
    return {
        "kind": "linear",
        "lo": rounded(low, 6),
        "hi": rounded(high, 6),
        "steps": found[0].steps.tolist(),
        "counts": _shares(np.stack(bins, axis=1)),
        "exact": bool((found[0].counts <= 1).all()),
    }


def _shares(counts: Array) -> list[Numbers]:
    """The counts of each step as shares that add up to one: they were rounded when recorded."""
    totals = counts.sum(axis=1, keepdims=True)
    shares = np.divide(counts, totals, out=np.zeros_like(counts), where=totals > 0)
    return [rounded(row, DIGITS) for row in shares]
