"""Histograms of gradients, weights and activations, on a few of the sampled steps.

They change slowly and cost more than the statistics, so the steps that record them get further and further
apart: a long run has some sixty of each. Their cost is part of the sampled step's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from clew.hooks.entry.guard import Guard
from clew.hooks.entry.sink import Sink
from clew.measure.deferred_values import Late, on_host
from clew.measure.readable_tensors import PLAIN, has_values
from clew.records.signals import measured
from clew.records.site import Site

LEAST = 4  # steps between two with histograms, after the first two
SPACING = 1.3  # ratio of each such step to the one before, later on: 57 of them up to step ten million
Key = tuple[str, Any]  # kind ("gradient", …), and its owner

BINS = 40
ROW = 2 + BINS  # lowest and highest value, then the counts
FIELDS = ("lo", "hi", *(f"{k:02d}" for k in range(BINS)))
MOST_READ = 4096  # elements that are read
_READ_AS: dict[torch.dtype, Any] = {
    torch.float32: np.float32,
    torch.float64: np.float64,
    torch.float16: np.float16,
    torch.bfloat16: np.uint16,  # numpy has no such type: the upper half of a float32
}
Array = npt.NDArray[Any]


class Histograms:
    """Gets every tensor measured in a sampled step; takes histograms on the steps that are due."""

    def __init__(self, sink: Sink, late: Late, guard: Guard) -> None:
        self._sink = sink
        self._late = late
        self._due = 0
        self.wanted = True  # in the running step
        self._rows: dict[Key, Array] = {}
        self._sites: dict[Key, int] = {}
        self._tables: dict[tuple[Key, ...], int] = {}
        self.seen = guard.inner("histograms", self._seen)
        self.commit = guard.inner("histograms", self._commit)

    def prepare(self, step: int) -> None:
        """A sampled step begins."""
        self._rows = {}
        self.wanted = step >= self._due

    def discard(self, what: str) -> None:
        """Drop what was measured of this kind."""
        self._rows = {key: row for key, row in self._rows.items() if key[0] != what}

    def _seen(self, what: str, key: Any, site: Callable[[], Site], tensor: Tensor) -> None:
        row = host_row(tensor) if on_host(tensor) else self._awaited(device_row(tensor))
        if row is None:
            return
        full = (what, key)
        if full not in self._sites:
            self._sites[full] = self._sink.site(site())
        self._rows[full] = row

    def _awaited(self, values: Tensor | None) -> Array | None:
        return None if values is None else self._late.row(values)

    def _commit(self, step: int) -> None:
        rows, self._rows = self._rows, {}
        if not rows:
            return
        self.wanted = False
        self._due = 1 if step == 0 else max(step + LEAST, int(step * SPACING))
        for what in dict.fromkeys(kind for kind, _ in rows):
            keys = tuple(key for key in rows if key[0] == what)
            self._late.then(partial(self._write, self._table(what, keys), step, [rows[k] for k in keys]))

    def _table(self, what: str, keys: tuple[Key, ...]) -> int:
        table = self._tables.get(keys)
        if table is None:
            recorded = [measured(what).histogram_name(field) for field in FIELDS]
            table = self._sink.table(recorded, [self._sites[key] for key in keys], "f4")
            self._tables[keys] = table
        return table

    def _write(self, table: int, step: int, rows: list[Array]) -> None:
        self._sink.row(table, step, np.concatenate(rows))


def stride_for(count: int) -> int:
    """Distance between the elements read; has no common factor with the size, so no column is left out."""
    step = -(-count // MOST_READ)
    while math.gcd(step, count) > 1:
        step += 1
    return step


def host_row(tensor: Tensor) -> Array | None:
    """The histogram of a tensor in host memory; None if it cannot be read or has no finite value.

    At most `MOST_READ` elements are read, evenly spaced and in place, without any torch op: nothing is
    dispatched, and no mode of the user's sees it.
    """
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
