"""Gradient norm over all parameters of an optimizer, cheap enough to compute before every step."""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from clew.measure import stats
from clew.measure.readable_tensors import UNREADABLE

AT_ONCE = 1 << 20  # elements that are read while other threads wait: a fraction of a millisecond

_NAME = sys.intern("grad")


class GradientNorm:
    """The gradient norm of a fixed set of parameters."""

    def __init__(self, parameters: Sequence[Tensor]) -> None:
        self.at = Addresses(parameters, gradients=True)
        # The norm, or a negative number if the kernel cannot compute it; used only if that takes a moment.
        self.at_once: Callable[[], float] | None = None
        if self.at.natives is not None and sum(self.at.sizes) <= AT_ONCE:
            self.at_once = self.at.natives.function("find_norm", self.at.request)

    def __call__(self) -> float | Tensor | None:
        """2-norm over all existing gradients, None if it is not known: see `grad_norm`."""
        norm = self.at_once() if self.at_once is not None else self._by_kernel()
        if 0.0 <= norm < math.inf:
            return norm
        return stats.grad_norm([p.grad for p in self.at.parameters if p.grad is not None])

    def _by_kernel(self) -> float:
        kernel = self.at.kernel
        if kernel is None or not self.at.find():
            return -1.0
        return math.sqrt(kernel.sumsq(*self.at.arrays, self.at.count))


class Request(ctypes.Structure):
    """What kernel.c needs to look them up by itself."""

    _fields_ = [
        ("name", ctypes.c_void_p),
        ("kind", ctypes.c_void_p),
        ("parameters", ctypes.c_void_p),
        ("counts", ctypes.c_void_p),
        ("dtypes", ctypes.c_void_p),
        ("pointers", ctypes.c_void_p),
        ("n", ctypes.c_int64),
    ]


class Addresses:
    """Memory addresses of an optimizer's parameters or gradients, looked up by the kernel in one call.

    What a gradient shares with its parameter is looked up once.
    """

    def __init__(self, parameters: Sequence[Tensor], gradients: bool) -> None:
        self.parameters = list(parameters)
        self._gradients = gradients
        codes = [stats.DTYPE_CODES.get(p.dtype) if p.is_cpu else None for p in self.parameters]
        self.kernel = stats.KERNEL if codes and None not in codes else None
        n = self.count = len(self.parameters)
        self._pointers = (ctypes.c_uint64 * n)()
        self.sizes = (ctypes.c_int64 * n)(*(p.numel() for p in self.parameters))
        self._codes = (ctypes.c_uint8 * n)(*(code or 0 for code in codes))
        address = ctypes.addressof
        self.arrays = (address(self._pointers), address(self.sizes), address(self._codes))
        self.natives = self.kernel.natives if self.kernel is not None else None
        if self.natives is not None:  # the kernel calls torch itself
            self.request = self._prepared()
            self._find = self.natives.function("find", self.request)

    def _prepared(self) -> int:
        self._objects = (ctypes.c_void_p * self.count)(*map(id, self.parameters))
        self._request = Request(
            name=id(_NAME) if self._gradients else None,
            kind=id(Tensor) if self._gradients else id(torch.nn.Parameter),
            parameters=ctypes.addressof(self._objects),
            pointers=self.arrays[0],
            counts=self.arrays[1],
            dtypes=self.arrays[2],
            n=self.count,
        )
        return ctypes.addressof(self._request)

    def find(self) -> bool:
        """Whether all exist and are plain and dense; then `arrays` tell the kernel where they are."""
        if self.kernel is None:
            return False
        if self.natives is not None:
            return bool(self._find())
        pointers: list[ctypes.c_uint64 | int] = []
        plain = Tensor if self._gradients else torch.nn.Parameter
        for parameter in self.parameters:
            tensor = parameter.grad if self._gradients else parameter
            if type(tensor) is not plain:
                return False
            try:
                if not tensor.is_contiguous():
                    return False
                pointers.append(tensor.data_ptr())
            except UNREADABLE:  # sparse, or without memory
                return False
        self._pointers[:] = pointers
        return True
