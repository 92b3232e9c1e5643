"""Tensor statistics in torch ops: for accelerators, and for a CPU without the compiled kernel.

On an accelerator nothing here waits for the device: the numbers stay there, in one small row, until `resolve`
fetches them.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from clew.records.signal_types import STATISTICS

BINS = 32
# A row: the statistics, the saturated share, the share of dead units, the histogram counts.
STATS = len(STATISTICS)
SATURATED, DEAD, HIST = STATS, STATS + 1, STATS + 2
ROW = HIST + BINS

BLOCK = 1024  # sums over this many floats keep their accuracy
HIST_EXACT, HIST_PART, HIST_BLOCKS = 4096, 128, 128  # as in kernel.c

# mean²/variance above which float32 sums of squares would leave fewer than five digits of the variance
LARGE_MEAN = 10.0


def stats_row(
    x: Tensor, *, hist: bool = False, lo: float = -math.inf, hi: float = math.inf, unit_dim: int | None = None
) -> Tensor:
    """The row of a real, strided tensor, on its device. Integers are read as floating point."""
    x = x.detach()
    wide = _wide(x)
    moments = _fast_moments(wide) if x.is_cpu else None
    if moments is None:
        moments = _careful_moments(wide)
    nothing = torch.full((1,), math.nan, dtype=moments.dtype, device=x.device)
    bounded = lo > -math.inf or hi < math.inf
    saturated = ((wide <= lo) | (wide >= hi)).to(moments.dtype).mean().view(1) if bounded else nothing
    dead = dead_share(x, unit_dim).to(moments.dtype).view(1) if unit_dim is not None else nothing
    counts = _bin_counts(wide).to(moments.dtype) if hist else nothing.expand(BINS)
    return torch.cat([moments, saturated, dead, counts])


def _wide(x: Tensor) -> Tensor:
    """Flat, and in a dtype that can represent the values: float64 only if needed."""
    narrow = x.element_size() <= 2 or x.dtype == torch.float32
    return x.reshape(-1).to(torch.float32 if narrow or not _has_float64(x) else torch.float64)


def _has_float64(x: Tensor) -> bool:
    return x.device.type != "mps"


def _fast_moments(x: Tensor) -> Tensor | None:
    """Few and cheap passes over finite values with a moderate mean; None for other values."""
    whole = x.numel() - x.numel() % BLOCK
    blocks, rest = x[:whole].view(-1, BLOCK), x[whole:].double()
    total = float(blocks.sum(1).sum(dtype=torch.float64) + rest.sum())
    norms = torch.linalg.vector_norm(blocks, dim=1).double()
    square = float(norms.square().sum() + rest.square().sum())
    n = x.numel()
    mean, variance = total / n, square / n - (total / n) ** 2
    # Also false for NaN. Squares of typically less than 1e-30 have lost digits to underflow.
    if not (1e-30 < square / n < 1e30 and mean**2 < LARGE_MEAN * variance):
        return None
    low, high = (float(v) for v in torch.aminmax(x))
    zeros = 1 - int(torch.count_nonzero(x)) / n
    row = [mean, math.sqrt(variance), low, high, math.sqrt(square), zeros, 0.0]
    return torch.tensor(row, dtype=torch.float64, device=x.device)


def _careful_moments(x: Tensor) -> Tensor:
    """Handles any values; scaled so that squares neither overflow nor vanish. Never waits for a device."""
    x = x.double() if x.is_cpu else x
    finite = x.isfinite()
    n = finite.sum().to(x.dtype)
    n = torch.where(n > 0, n, math.nan)  # no finite value: mean to norm become NaN
    low = torch.where(finite, x, math.inf).amin()
    high = torch.where(finite, x, -math.inf).amax()
    tiny = torch.finfo(x.dtype).tiny
    scale = torch.maximum(low.abs(), high.abs()).clamp(min=tiny)
    mean = torch.where(finite, x / scale, 0).sum() / n
    m2 = torch.where(finite, x / scale - mean, 0).square().sum()
    std, norm = (m2 / n).sqrt() * scale, (m2 + n * mean.square()).sqrt() * scale
    low, high = low + 0 * mean, high + 0 * mean
    zeros = (x == 0).to(x.dtype).mean()
    nonfinite = (~finite).sum().to(x.dtype)
    return torch.stack([mean * scale, std, low, high, norm, zeros, nonfinite])


def _bin_counts(x: Tensor) -> Tensor:
    """Sampled values per power of two; the sample is kernel.c's, except for the last block."""
    if x.numel() > HIST_EXACT:
        parts = x[: x.numel() - x.numel() % BLOCK].view(-1, BLOCK // HIST_PART, HIST_PART)
        parts = parts[:: -(-len(parts) // HIST_BLOCKS)]
        block = torch.arange(len(parts), device=x.device)
        x = parts[block, block % (BLOCK // HIST_PART)].reshape(-1)
    exponent = torch.frexp(x).exponent.to(torch.int64)
    bins = (exponent + 23).clamp(0, BINS - 1)
    bins = torch.where((x != 0) & x.isfinite(), bins, BINS)
    if x.is_cpu:
        return torch.bincount(bins, minlength=BINS + 1)[:BINS]
    return (bins[:, None] == torch.arange(BINS, device=x.device)).sum(0)  # bincount would wait for the device


def dead_share(x: Tensor, unit_dim: int) -> Tensor:
    """Share of the units that are zero everywhere, as a 0-d tensor."""
    others = [d for d in range(x.dim()) if d != unit_dim % x.dim()]
    alive = (x != 0).sum(others) > 0 if others else x != 0
    return 1 - alive.to(torch.float32).mean()


def resolve(
    row: Tensor, out: npt.NDArray[np.float64], hist: npt.NDArray[np.uint8] | None = None
) -> tuple[float, float]:
    """Fetch a row: fills `out` and `hist`, returns the saturated share and the share of dead units."""
    values = row.to("cpu", torch.float64).numpy()
    out[:STATS] = values[:STATS]
    if hist is not None:
        counts = np.nan_to_num(values[HIST:])
        scaled = np.floor(counts / max(counts.sum(), 1) * 255 + 0.5)
        hist[:] = np.where((counts > 0) & (scaled == 0), 1, scaled).astype(np.uint8)
    return float(values[SATURATED]), float(values[DEAD])
