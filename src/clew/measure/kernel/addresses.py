"""Memory addresses of an optimizer's parameters or gradients, looked up by the kernel in one call."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence

import torch
from torch import Tensor

from clew.measure import stats
from clew.measure.plain_values import UNREADABLE


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


_NAME = sys.intern("grad")


class Addresses:
    """Addresses of a fixed set of parameters. What a gradient shares with its parameter is looked up once."""

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
