"""Histogram of a tensor: its range, and counts in bins of equal width.

At most `MOST` elements are read, evenly spaced. On the host they are read in place, without any torch op:
nothing is dispatched, and no mode of the user's sees it. On an accelerator the counts stay there until they
are fetched.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from clew.measure.readable_tensors import PLAIN, has_values

BINS = 40
ROW = 2 + BINS  # lowest and highest value, then the counts
MOST = 4096  # elements that are read

_READ_AS: dict[torch.dtype, Any] = {
    torch.float32: np.float32,
    torch.float64: np.float64,
    torch.float16: np.float16,
    torch.bfloat16: np.uint16,  # numpy has no such type: the upper half of a float32
}

Array = npt.NDArray[Any]


def stride_for(count: int) -> int:
    """Distance between the elements read; has no common factor with the size, so no column is left out."""
    step = -(-count // MOST)
    while math.gcd(step, count) > 1:
        step += 1
    return step


def host_row(tensor: Tensor) -> Array | None:
    """The histogram of a tensor in host memory; None if it cannot be read or has no finite value."""
    try:
        values = _host_values(tensor)
    except (RuntimeError, NotImplementedError):  # no memory of its own
        return None
    return None if values is None else row_of(values)


def row_of(values: Array) -> Array | None:
    """Range and counts like numpy.histogram's; if all values are equal, they are in the first bin."""
    low, high = float(values.min()), float(values.max())
    if not math.isfinite(low) or not math.isfinite(high):
        values = values[np.isfinite(values)]
        return row_of(values) if len(values) else None
    row = np.zeros(ROW)
    row[:2] = low, high
    if high > low:
        bins = ((values.astype(np.float64) - low) * (BINS / (high - low))).astype(np.intp)
        row[2:] = np.bincount(np.minimum(bins, BINS - 1, out=bins), minlength=BINS)
    else:
        row[2] = len(values)
    return row


class _Memory:
    """Memory at an address, for numpy to read: copies nothing and does not call torch."""

    def __init__(self, address: int, kind: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
        self.__array_interface__ = {
            "version": 3,
            "typestr": np.dtype(kind).str,
            "data": (address, True),  # read-only
            "shape": shape,
            "strides": strides,
        }


def _host_values(tensor: Tensor) -> Array | None:
    kind = _READ_AS.get(tensor.dtype)
    if kind is None or type(tensor) not in PLAIN or not has_values(tensor) or tensor.is_neg():
        return None
    count, address = tensor.numel(), tensor.data_ptr()
    if not count or not address:
        return None
    step, size = stride_for(count), np.dtype(kind).itemsize
    values: Array
    if tensor.is_contiguous():
        values = np.asarray(_Memory(address, kind, (-(-count // step),), (step * size,)))
    else:
        shape = tuple(tensor.shape)
        whole = np.asarray(_Memory(address, kind, shape, tuple(s * size for s in tensor.stride())))
        values = whole[np.unravel_index(np.arange(0, count, step), shape)]
    if tensor.dtype is torch.bfloat16:
        values = (values.astype(np.uint32) << 16).view(np.float32)
    return values


def device_row(tensor: Tensor) -> Tensor | None:
    """The same row for a tensor on a device, left there: nothing waits for it."""
    if not tensor.is_floating_point() or not has_values(tensor) or not tensor.numel():
        return None
    with torch.no_grad(), torch._C.DisableTorchFunction():
        x = tensor.detach().reshape(-1)[:: stride_for(tensor.numel())].to(torch.float32)
        finite = x.isfinite()
        low = torch.where(finite, x, math.inf).amin()
        high = torch.where(finite, x, -math.inf).amax()
        bins = ((x - low) / (high - low) * BINS).nan_to_num(0).clamp(0, BINS - 1).to(torch.int64)
        bins = torch.where(finite, bins, BINS)
        counts = (bins[:, None] == torch.arange(BINS, device=x.device)).sum(0)  # bincount would wait
        return torch.cat([low.view(1), high.view(1), counts.to(torch.float32)])
