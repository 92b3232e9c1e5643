"""The statistics computed the obvious way: numpy, float64, nothing clever."""

from __future__ import annotations

import math

import numpy as np
import torch


def values_of(t):
    return t.detach().to(torch.float64).reshape(-1).numpy()


def naive_stats(t):
    x = values_of(t)
    finite = x[np.isfinite(x)]
    if x.size == 0:
        return np.full(7, math.nan)
    some = finite.size > 0
    return np.array(
        [
            finite.mean() if some else math.nan,
            finite.std() if some else math.nan,
            finite.min() if some else math.nan,
            finite.max() if some else math.nan,
            math.sqrt((finite**2).sum()) if some else math.nan,
            (x == 0).mean(),
            (~np.isfinite(x)).sum(),
        ]
    )


def naive_saturated(t, lo, hi):
    x = values_of(t)
    return ((x <= lo) | (x >= hi)).mean()


def naive_hist(t):
    x = values_of(t)
    x = x[np.isfinite(x) & (x != 0)]
    bins = np.clip(np.frexp(x)[1] - 1 + 24, 0, 31)
    counts = np.bincount(bins, minlength=32)
    scaled = np.floor(counts / max(counts.sum(), 1) * 255 + 0.5).astype(np.uint8)
    return np.where((counts > 0) & (scaled == 0), 1, scaled)


def naive_dead(t, dim):
    x = t.detach().to(torch.float64).movedim(dim, 0).reshape(t.shape[dim], -1).numpy()
    return (x == 0).all(axis=1).mean()


def assert_same_stats(got, want, label=""):
    """min, max, zeros and counts exactly; the moments to 1e-5 of the scale that conditions them."""
    np.testing.assert_array_equal(got[[2, 3]], want[[2, 3]], err_msg=f"min, max {label}")
    np.testing.assert_allclose(got[5:], want[5:], rtol=1e-12, err_msg=f"zeros, nonfinite {label}")
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want), err_msg=f"NaN {label}")
    if math.isnan(want[0]):
        return
    # float64 itself can't tell a spread below a few ulps of the mean.
    floor = 1e-13 * abs(want[0])
    assert abs(got[0] - want[0]) <= 1e-5 * max(abs(want[0]), 0.1 * want[1]) + 1e-300, (
        "mean",
        got,
        want,
        label,
    )
    assert abs(got[1] - want[1]) <= 1e-5 * want[1] + floor, ("std", got, want, label)
    assert abs(got[4] - want[4]) <= 1e-5 * want[4], ("norm", got, want, label)
