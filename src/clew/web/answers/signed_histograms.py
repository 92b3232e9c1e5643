"""Signed histograms of a layer, where recorded: bins of values rather than of powers of two."""

from __future__ import annotations

import numpy as np

from clew.web.answer_shapes import SignedBins
from clew.web.runs.opened_run import OpenRun
from clew.web.strict_json import rounded

BINS = 40
MOST = 1000  # far more than a run holds: each step is its own row
DIGITS = 4


def has_signed(run: OpenRun, rank: int, stat: str, site_key: str) -> bool:
    """Whether a layer has them."""
    return any(e.site_key == site_key for e in run.catalogue.find(f"{stat}.histogram.lo", rank))


def signed_histograms(
    run: OpenRun, rank: int, stat: str, site_key: str, lo: int | None, hi: int | None
) -> SignedBins:
    """Range and shares in bins of equal width at every step that has them."""
    fields = ["lo", "hi", *(f"{k:02d}" for k in range(BINS))]
    found = [run.index.query(f"{stat}.histogram.{f}", site_key, lo, hi, MOST, rank) for f in fields]
    low, high, *bins = [envelope.means() for envelope in found]
    counts = np.stack(bins, axis=1)
    totals = counts.sum(axis=1, keepdims=True)
    shares = np.divide(counts, totals, out=np.zeros_like(counts), where=totals > 0)
    return {
        "kind": "linear",
        "lo": rounded(low, 6),
        "hi": rounded(high, 6),
        "steps": found[0].steps.tolist(),
        "counts": [rounded(row, DIGITS) for row in shares],
        "exact": bool((found[0].counts <= 1).all()),
    }
