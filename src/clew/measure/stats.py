"""Tensor statistics from one pass over a tensor's memory: mean, std, min, max, norm, zeros, histogram.

Reads only: no random numbers, no change to the tensor, its autograd state or any mode. A tensor that cannot
be read (sparse, quantised, complex, meta, fake, …) gives NaN and never an exception; the norm over gradients
leaves it out.

On a CPU the compiled kernel does the work. On an accelerator use `tensor_stats_async`, which does not wait
for the device, and `resolve` its row later.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from clew.measure import stats_torch
from clew.measure.kernel.compiled_library import Kernel, Team, load
from clew.measure.readable_tensors import PLAIN, UNREADABLE, as_base, has_values, readable
from clew.measure.stats_torch import resolve
from clew.records.signal_types import STATISTICS

__all__ = [
    "STAT_NAMES",
    "dead_fraction",
    "grad_norm",
    "kernel_available",
    "resolve",
    "tensor_stats",
    "tensor_stats_async",
    "tensor_stats_at",
]

STAT_NAMES = tuple(statistic.name for statistic in STATISTICS)

KERNEL = load()
TEAM = Team(KERNEL)
DTYPE_CODES = {torch.float32: 0, torch.float64: 1, torch.bfloat16: 2, torch.float16: 3}
_OutRow = ctypes.c_double * len(STAT_NAMES)
_HistRow = ctypes.c_uint8 * stats_torch.BINS

_natives = KERNEL.natives if KERNEL is not None else None
_read_number = _natives.function("number") if _natives is not None else None


def kernel_available() -> bool:
    """Whether the compiled kernel is in use; without it the same numbers cost several times more."""
    return KERNEL is not None


def tensor_stats(
    t: Tensor,
    *,
    out: npt.NDArray[np.float64],
    hist: npt.NDArray[np.uint8] | None = None,
    lo: float = -math.inf,
    hi: float = math.inf,
) -> float:
    """Fill `out` in the order of STAT_NAMES, and return the share of elements ≤ lo or ≥ hi.

    mean, std (of the population), min, max and norm are those of the finite elements, `zeros` is a share and
    `nonfinite` a count. `hist` gets 32 powers of two in 255ths, never 0 for a bin that is not empty; for a
    large tensor it is computed from a sample. Without a bound the saturated share is NaN.
    """
    if out.dtype.char != "d":
        raise ValueError("out must be a float64 array")
    if hist is not None and hist.dtype.char != "B":
        raise ValueError("hist must be a uint8 array")
    # from_buffer refuses what is too small or not contiguous, and is faster than numpy's `.ctypes`.
    row = ctypes.addressof(_OutRow.from_buffer(out.data))
    bins = None if hist is None else ctypes.addressof(_HistRow.from_buffer(hist.data))
    return tensor_stats_at(t, row, bins, lo, hi)


def tensor_stats_at(
    t: Tensor, out: int, hist: int | None = None, lo: float = -math.inf, hi: float = math.inf
) -> float:
    """`tensor_stats` for hot paths: writes to the addresses `out` (one double per statistic) and `hist`."""
    try:
        if KERNEL is not None and t.is_cpu and type(t) in PLAIN:
            code = DTYPE_CODES.get(t.dtype)
            if code is not None and t.is_contiguous() and not t.is_neg():
                address = t.data_ptr()
                if address:  # an empty tensor, or one without memory, has no address
                    return KERNEL.stats(address, t.numel(), code, out, hist, lo, hi)
        return _stats_elsewhere(t, out, hist, lo, hi)
    except UNREADABLE:
        return _fill_nan(out, hist)


def tensor_stats_async(
    t: Tensor,
    *,
    hist: bool = False,
    lo: float = -math.inf,
    hi: float = math.inf,
    unit_dim: int | None = None,
) -> Tensor:
    """The statistics as a small tensor on the tensor's device, without waiting for it: see `resolve`.

    With `unit_dim`, the row also contains the share of dead units along that dimension.
    """
    try:
        with torch.no_grad():
            plain = _as_plain(t)
            if plain is not None and plain.numel():
                return stats_torch.stats_row(plain, hist=hist, lo=lo, hi=hi, unit_dim=unit_dim)
    except UNREADABLE:
        pass
    return torch.full((stats_torch.ROW,), math.nan, device="cpu")


def dead_fraction(t: Tensor, unit_dim: int) -> float:
    """Share of the units along `unit_dim` that are zero everywhere; NaN if it cannot be determined.

    Stops reading as soon as every unit has had a non-zero value. On an accelerator this waits for the device:
    use `tensor_stats_async` there.
    """
    try:
        plain = _as_plain(t)
        if plain is None or not plain.numel() or not plain.dim():
            return math.nan
        if KERNEL is not None and plain.is_cpu and plain.dtype in DTYPE_CODES:
            return _dead_by_kernel(KERNEL, plain, unit_dim)
        with torch.no_grad():
            return float(stats_torch.dead_share(plain, unit_dim))
    except UNREADABLE:
        return math.nan


def grad_norm(tensors: Sequence[Tensor]) -> float | Tensor | None:
    """2-norm over all readable tensors together; NaN and infinity survive. None if none can be read.

    A float on the CPU. If any tensor is on an accelerator, a 0-d tensor there, without waiting for it.
    """
    try:
        square, others = _sum_of_squares(tensors)
        values = [v for t in others if (v := readable(t)) is not None]
        if others and not values and len(others) == len(tensors):
            return None
        norm = _with_others(square, values) if values else math.sqrt(square)
        overflows = type(norm) is float and norm == math.inf  # a number on a device is not read
        return _scaled_norm(tensors) if overflows else norm
    except UNREADABLE:
        return None


def _sum_of_squares(tensors: Sequence[Tensor]) -> tuple[float, list[Tensor]]:
    """One kernel call for all tensors that it can read; also returns those that it cannot."""
    addresses, counts, codes, others = [], [], [], []
    for t in tensors:
        code = (
            DTYPE_CODES.get(t.dtype) if t.is_cpu and type(t) in PLAIN and t.layout is torch.strided else None
        )
        if KERNEL is None or code is None or not (t.is_contiguous() or _is_dense(t.shape, t.stride())):
            others.append(t)
        else:
            addresses.append(t.data_ptr())
            counts.append(t.numel())
            codes.append(code)
    n = len(addresses)
    if KERNEL is None or not n:
        return 0.0, others
    pointers, sizes = (ctypes.c_uint64 * n)(*addresses), (ctypes.c_int64 * n)(*counts)
    dtypes = (ctypes.c_uint8 * n)(*codes)
    address = ctypes.addressof
    return KERNEL.sumsq(address(pointers), address(sizes), address(dtypes), n), others


# ---- tensors that the fast path does not take ----------------------------------------------


def _stats_elsewhere(t: Tensor, out: int, hist: int | None, lo: float, hi: float) -> float:
    with torch.no_grad():
        plain = _as_plain(t)
        if plain is None or not plain.numel():
            return _fill_nan(out, hist)
        plain, repeats = _without_repeats(plain)
        row = np.ctypeslib.as_array(_OutRow.from_address(out))
        if KERNEL is None or not plain.is_cpu:
            bins = None if hist is None else np.ctypeslib.as_array(_HistRow.from_address(hist))
            values = stats_torch.stats_row(plain, hist=bins is not None, lo=lo, hi=hi)
            saturated, _ = resolve(values, row, bins)
        else:
            flat = _flat(plain)
            saturated = KERNEL.stats(
                flat.data_ptr(), flat.numel(), DTYPE_CODES[flat.dtype], out, hist, lo, hi
            )
    row[4] *= math.sqrt(repeats)
    row[6] *= repeats
    return saturated


def _as_plain(t: Tensor) -> Tensor | None:
    """The tensor as one with memory of its own, or None if it has no memory with its values."""
    base = as_base(t) if has_values(t) else None
    return None if base is None or base.is_complex() else base


def _without_repeats(t: Tensor) -> tuple[Tensor, int]:
    """An expanded tensor as what it repeats, and how often: a full copy could be of any size."""
    repeats = 1
    for dim, stride in enumerate(t.stride()):
        if stride == 0 and t.shape[dim] > 1:
            repeats *= t.shape[dim]
            t = t.detach().narrow(dim, 0, 1)
    return t, repeats


def _flat(t: Tensor) -> Tensor:
    """A tensor whose memory, read in order, contains the same values: itself if possible."""
    if t.dtype not in DTYPE_CODES:  # integers, booleans, 8-bit floats
        t = t.to(torch.float32 if t.element_size() <= 2 else torch.float64)
    t = t.detach().resolve_neg()
    return t if _is_dense(t.shape, t.stride()) else t.contiguous()


@lru_cache(maxsize=4096)
def _is_dense(shape: tuple[int, ...], stride: tuple[int, ...]) -> bool:
    """Whether the elements fill their memory without gap or overlap, in any order (channels_last)."""
    expected = 1
    for step, size in sorted(zip(stride, shape, strict=True)):
        if size == 1:
            continue
        if step != expected:
            return False
        expected *= size
    return True


def _dead_by_kernel(kernel: Kernel, t: Tensor, unit_dim: int) -> float:
    if not _is_dense(t.shape, t.stride()):
        t = t.detach().contiguous()
    units = t.shape[unit_dim]
    # In memory, every dimension that moves faster than the unit's own is inside the unit.
    inner = t.stride(unit_dim) if units > 1 else t.numel()
    outer = t.numel() // (units * inner)
    address = t.data_ptr()
    dead = kernel.units_dead(address, outer, units, inner, t.element_size()) if address else -1
    return dead / units if dead >= 0 else math.nan


def _with_others(square: float, others: list[Tensor]) -> float | Tensor:
    """Add the squares of tensors that the kernel cannot read to those that it has read."""
    with torch.no_grad():
        remote = [t for t in others if not t.is_cpu and t.numel()]
        square += sum(float(t.double().square().sum()) for t in others if t.is_cpu)
        if not remote:
            return math.sqrt(square)
        device = remote[0].device
        norms = torch._foreach_norm(remote, 2, torch.float32)
        squares = [n.to(device, non_blocking=True).square() for n in norms]
        return (torch.stack(squares).sum() + square).sqrt()


def _scaled_norm(tensors: Sequence[Tensor]) -> float:
    """The norm of finite numbers whose squares overflow a float64; infinite if one of them is."""
    with torch.no_grad():
        values = [v.double() for t in tensors if (v := readable(t)) is not None and v.numel()]
        largest = max(float(v.abs().max()) for v in values)
        if largest == math.inf:
            return largest
        return largest * math.sqrt(sum(float((v / largest).square().sum()) for v in values))


def _fill_nan(out: int, hist: int | None) -> float:
    _OutRow.from_address(out)[:] = [math.nan] * len(STAT_NAMES)
    if hist is not None:
        ctypes.memset(hist, 0, stats_torch.BINS)
    return math.nan


def number(value: Any) -> float | None:
    """The number in a plain tensor in host memory; None for anything else. Called before every backward."""
    if type(value) is not Tensor or value.is_neg():  # the memory does not show that a view is negated
        return None
    found: float | None = _read_number(value) if _read_number is not None else None
    if found is None and value.is_cpu and value.numel() == 1:
        found = float(value.item())
    return found


class Matrix(ctypes.Structure):
    """Where the rows are; same layout as in kernel.c."""

    _fields_ = [
        ("out", ctypes.c_void_p),
        ("stride", ctypes.c_int64),
        ("hist", ctypes.c_void_p),
    ]


class _Layer(ctypes.Structure):
    """What is known of one layer; same layout as in kernel.c."""

    _fields_ = [
        ("matrix", ctypes.c_void_p),
        ("slot", ctypes.c_int64),
        ("lo", ctypes.c_double),
        ("hi", ctypes.c_double),
        ("unit", ctypes.c_int32),
        ("dims", ctypes.c_int32),
        ("shares", ctypes.c_int32),
    ]


class KernelRow:
    """Fills one row of a matrix with the statistics of a layer, in one kernel call.

    The matrix must outlive it.
    """

    def __init__(
        self,
        matrix: Matrix,
        slot: int,
        shares: bool,
        lo: float = -math.inf,
        hi: float = math.inf,
        unit_dim: int | None = None,
        dims: int = 0,
    ) -> None:
        """`shares`: there is room for the shares of dead units (along `unit_dim`) and of saturated values."""
        unit = -1 if unit_dim is None else unit_dim % dims
        self._layer = _Layer(ctypes.addressof(matrix), slot, lo, hi, unit, dims, shares)
        natives = KERNEL.natives if KERNEL is not None else None
        self._fill: Callable[[Tensor], bool] | None = None
        if natives is not None:
            self._fill = natives.function("measure", ctypes.addressof(self._layer))

    def fill(self, tensor: Tensor) -> bool:
        """Fill the row. Returns False if the kernel cannot read the tensor."""
        fill = self._fill
        # The memory does not show that a view is negated.
        return fill is not None and type(tensor) is Tensor and not tensor.is_neg() and fill(tensor)
