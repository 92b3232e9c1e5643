"""Rows of a sampled step: one per layer or parameter in a matrix, or one per site.

They are written when the step ends, or dropped if it was not a training step.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from torch import Tensor

from clew.hooks.collect_layers.trained_models import ParameterName
from clew.hooks.entry.sink import Sink, SiteTables
from clew.measure.deferred_values import Late, on_host
from clew.measure.gradient_norm import Addresses
from clew.measure.readable_tensors import UNREADABLE
from clew.measure.stats import (
    STAT_NAMES,
    KernelRow,
    Matrix,
    dead_fraction,
    resolve,
    tensor_stats_async,
    tensor_stats_at,
)
from clew.records.signal_types import Signal, TensorSignals, names
from clew.records.site import Site

BINS = 32
DEAD = len(STAT_NAMES)  # index of the dead share in a row with shares; the saturated share follows
SHARE_COLUMNS = slice(DEAD, DEAD + 2)

Named = list[tuple[Tensor, ParameterName]]
_INF = math.inf


class Slots:
    """The rows of some parameters."""

    def __init__(self, named: Named, slots: list[int]) -> None:
        self.named = named
        self.numbers = np.array(slots, np.int64)
        self.address = self.numbers.ctypes.data
        self.filled = dict.fromkeys(slots)


class StepMatrix:
    """A growing matrix with one row per site; each step fills some of the rows."""

    def __init__(
        self, sink: Sink, late: Late, measured: TensorSignals, *more: Signal, shares: bool = False
    ) -> None:
        """`shares`: the first two of `more` are the shares of dead units and of saturated values."""
        self._sink = sink
        self._late = late
        self._signals = [*measured.names, *names(*more)]
        self._hist_signals = [measured.log2hist_name(k) for k in range(BINS)]
        self._slots: dict[Any, int] = {}
        self._sites: list[int] = []
        self._filled: dict[int, None] = {}
        self._tables: dict[tuple[int, ...], tuple[int, int]] = {}
        self._together: weakref.WeakKeyDictionary[Addresses, Slots] = weakref.WeakKeyDictionary()
        self._has_shares = shares
        own = DEAD + 2 * shares  # filled by the kernel; the columns after these by the collector, if at all
        self._others = slice(own, None) if len(self._signals) > own else None
        self._known: dict[int, KernelRow] = {}  # per slot: how the kernel fills it
        self._matrix = Matrix()
        self.histograms = True  # whether this step takes histograms
        self._use(np.full((16, len(self._signals)), np.nan), np.zeros((16, BINS), dtype=np.uint8))

    def _use(self, values: np.ndarray[Any, Any], hist: np.ndarray[Any, Any]) -> None:
        self.values, self._hist = values, hist
        self._address, self._stride = values.ctypes.data, values.strides[0]
        self._hist_address = hist.ctypes.data
        self._point_kernel()

    def take_histograms(self, wanted: bool) -> None:
        """Whether the step that begins now takes histograms."""
        self.histograms = wanted
        self._point_kernel()

    def _point_kernel(self) -> None:
        matrix = self._matrix
        matrix.out, matrix.stride = self._address, self._stride
        matrix.hist = self._hist_address if self.histograms else None

    def slot(self, key: Any, site: Callable[[], Site]) -> int:
        """The row of a site; it will be written this step."""
        slot = self._slots.get(key)
        if slot is None:
            slot = self._slots[key] = len(self._slots)
            self._sites.append(self._sink.site(site()))
            if slot >= len(self.values):
                more = np.full_like(self.values, np.nan), np.zeros_like(self._hist)
                self._late.resolve()  # pending values belong in the current arrays
                self._use(np.concatenate([self.values, more[0]]), np.concatenate([self._hist, more[1]]))
        self._filled[slot] = None
        return slot

    def __contains__(self, key: Any) -> bool:
        return key in self._slots

    def sites_above_zero(self, column: int) -> list[Any]:
        """The keys of the rows with a positive number in this column."""
        above = self.values[: len(self._slots), column] > 0
        return [key for key, slot in self._slots.items() if above[slot]] if above.any() else []

    def measure(
        self, slot: int, tensor: Tensor, lo: float = -_INF, hi: float = _INF, unit_dim: int | None = None
    ) -> None:
        """Fill a row. If it has room for them, add the shares of dead units and of saturated values."""
        if self._others is not None:
            self._empty(slot)
        if on_host(tensor):
            if not self._row(slot, tensor, lo, hi, unit_dim).fill(tensor):
                self._measure_elsewhere(slot, tensor, lo, hi, unit_dim)
            return
        row, hist = self.values[slot], self._hist[slot] if self.histograms else None

        def fill(values: Tensor) -> None:
            saturated, dead = resolve(values, row, hist)
            if self._has_shares:
                row[SHARE_COLUMNS] = dead, saturated

        values = tensor_stats_async(tensor, hist=self.histograms, lo=lo, hi=hi, unit_dim=unit_dim)
        self._late.add(values, fill)

    def _row(self, slot: int, tensor: Tensor, lo: float, hi: float, unit_dim: int | None) -> KernelRow:
        known = self._known.get(slot)
        if known is None:
            known = KernelRow(self._matrix, slot, self._has_shares, lo, hi, unit_dim, tensor.dim())
            self._known[slot] = known
        return known

    def _measure_elsewhere(
        self, slot: int, tensor: Tensor, lo: float, hi: float, unit_dim: int | None
    ) -> None:
        """Measure a tensor that the kernel cannot read directly."""
        address = self._address + slot * self._stride
        hist_address = self._hist_address + slot * BINS if self.histograms else None
        saturated = tensor_stats_at(tensor, address, hist_address, lo, hi)
        if self._has_shares:
            dead = math.nan if unit_dim is None else dead_fraction(tensor, unit_dim)
            self.values[slot, SHARE_COLUMNS] = dead, saturated

    def measure_again(self, slot: int, tensor: Any) -> bool:
        """Fill a row as it was filled before, if the kernel can: the fastest way."""
        known = self._known.get(slot)
        if known is None or not known.fill(tensor):  # on a device, or not readable for the kernel
            return False
        if self._others is not None:
            self._empty(slot)
        self._filled[slot] = None
        return True

    def _empty(self, slots: Any) -> None:
        """Clear the columns that the kernel does not fill: they still hold the last step's numbers."""
        self.values[slots, self._others] = math.nan

    def known(self, key: Any) -> int | None:
        """The row of a site that was measured before."""
        return self._slots.get(key)

    def measure_together(self, named: Named, at: Addresses) -> Slots | None:
        """Fill the rows of many tensors in one kernel call. None means they must be measured one by one."""
        try:
            if at.kernel is None or not at.find():
                return None
        except UNREADABLE:
            return None
        slots = self._together.get(at)
        if slots is None or slots.named is not named:
            slots = self._together[at] = Slots(named, [self.slot(name, name.site) for _, name in named])
        hist = self._hist_address if self.histograms else None
        if self._others is not None:
            self._empty(slots.numbers)
        at.kernel.stats_list(*at.arrays, at.count, slots.address, self._address, self._stride, hist)
        self._filled.update(slots.filled)
        return slots

    def commit(self, step: int) -> None:
        """Pass the filled rows to the sink and start again."""
        slots = tuple(sorted(self._filled))
        self._filled = {}
        if not slots:
            return
        tables = self._tables.get(slots)
        if tables is None:
            sites = [self._sites[slot] for slot in slots]
            tables = self._tables[slots] = (
                self._sink.table(self._signals, sites, "f4"),
                self._sink.table(self._hist_signals, sites, "u1"),
            )
        hist = self._hist if self.histograms else None
        self._late.then(partial(self._write, step, tables, self.values, hist, list(slots)))
        if self._late.is_waiting:  # for values that go into these arrays
            self._use(self.values.copy(), self._hist.copy())

    def _write(self, step: int, tables: tuple[int, int], values: Any, hist: Any, slots: list[int]) -> None:
        self._sink.row(tables[0], step, values[slots].ravel())
        if hist is not None:
            self._sink.row(tables[1], step, hist[slots].ravel())

    def discard(self) -> None:
        self._filled = {}


class SiteRows:
    """One table for each kind of row and site; rows wait here for the end of the step."""

    def __init__(self, sink: Sink, late: Late) -> None:
        self._sink = sink
        self._late = late
        self._tables = SiteTables(sink)
        self._rows: list[tuple[int, Any]] = []

    def put(self, signals: Sequence[str], site: Site, values: Any) -> None:
        """Add a row of these signals at this site; its values may still be on their way from the device."""
        self._rows.append((self._tables.table(signals, site), values))

    def commit(self, step: int) -> None:
        """The step has ended: write its rows."""
        for table, values in self._rows:
            self._late.then(partial(self._sink.row, table, step, values))
        self._rows = []

    def discard(self) -> None:
        """Drop the rows: they belong to an evaluation."""
        self._rows = []
