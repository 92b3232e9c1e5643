"""One kernel call that fills the row of a layer: statistics, dead units and saturated values."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable

from torch import Tensor

from clew.measure import stats


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
    """Fills one row of a matrix, which must outlive it."""

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
        natives = stats.KERNEL.natives if stats.KERNEL is not None else None
        self._fill: Callable[[Tensor], bool] | None = None
        if natives is not None:
            self._fill = natives.function("measure", ctypes.addressof(self._layer))

    def fill(self, tensor: Tensor) -> bool:
        """Fill the row. Returns False if the kernel cannot read the tensor."""
        fill = self._fill
        # The memory does not show that a view is negated.
        return fill is not None and type(tensor) is Tensor and not tensor.is_neg() and fill(tensor)
