"""The norm over all gradients of an optimizer, as cheap as it can be asked before every step."""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

from clew.capture import stats
from clew.capture.kernel import Kernel

AT_ONCE = 1 << 20  # elements that are read while other threads wait: a fraction of a millisecond
_CAPSULE = b"dlpack_exchange_api"


class Request(ctypes.Structure):
    """What kernel.c needs to look up the gradients by itself."""

    _fields_ = [
        ("attribute", ctypes.c_void_p),
        ("type_of", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("view", ctypes.c_void_p),
        ("name", ctypes.c_void_p),
        ("tensor", ctypes.c_void_p),
        ("parameters", ctypes.c_void_p),
        ("counts", ctypes.c_void_p),
        ("dtypes", ctypes.c_void_p),
        ("pointers", ctypes.c_void_p),
        ("n", ctypes.c_int64),
    ]


class _ExchangeApi(ctypes.Structure):
    """The table of the DLPack standard: of its functions only the one that gives a view of a tensor."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("previous", ctypes.c_void_p),
        ("allocate", ctypes.c_void_p),
        ("give", ctypes.c_void_p),
        ("take", ctypes.c_void_p),
        ("view", ctypes.c_void_p),
    ]


def _view_function() -> int | None:
    """Torch's function that tells where a tensor lies; None where torch has none, or of another standard."""
    capsule = getattr(Tensor, "__dlpack_c_exchange_api__", None)
    if capsule is None or sys.implementation.name != "cpython":
        return None
    read = ctypes.pythonapi.PyCapsule_GetPointer
    read.argtypes, read.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_void_p
    try:
        api = _ExchangeApi.from_address(read(capsule, _CAPSULE))
    except (ValueError, TypeError):  # a capsule of another name, or none
        return None
    view: int | None = api.view
    return view if api.major == 1 else None


_VIEW = _view_function()
_NAME = sys.intern("grad")


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


class GradientNorm:
    """Of a fixed set of parameters. What a gradient shares with its parameter is looked up once."""

    def __init__(self, parameters: Sequence[Tensor]) -> None:
        self._parameters = list(parameters)
        kernel = stats._KERNEL
        codes = [stats._CODES.get(p.dtype) if p.is_cpu else None for p in self._parameters]
        self._kernel = kernel if codes and None not in codes else None
        n = len(self._parameters)
        self._pointers = (ctypes.c_uint64 * n)()
        self._sizes = (ctypes.c_int64 * n)(*(p.numel() for p in self._parameters))
        self._codes = (ctypes.c_uint8 * n)(*(code or 0 for code in codes))
        address = ctypes.addressof
        self._arrays = (address(self._pointers), address(self._sizes), address(self._codes))
        self._asked = False  # of torch itself, by the kernel
        self._at_once: Callable[[int], float] | None = None
        if self._kernel is not None and _VIEW is not None:
            self._prepare()

    def _prepare(self) -> None:
        python = ctypes.pythonapi
        self._objects = (ctypes.c_void_p * len(self._parameters))(*map(id, self._parameters))
        self._request = Request(
            attribute=_address(python.PyObject_GetAttr),
            type_of=_address(python.PyObject_Type),
            release=_address(python.Py_DecRef),
            view=_VIEW,
            name=id(_NAME),
            tensor=id(Tensor),
            parameters=ctypes.addressof(self._objects),
            pointers=self._arrays[0],
            counts=self._arrays[1],
            dtypes=self._arrays[2],
            n=len(self._parameters),
        )
        self._at = ctypes.addressof(self._request)
        self._asked = True
        if self._kernel is not None and sum(self._sizes) <= AT_ONCE:
            self._at_once = self._kernel.gradients_sumsq

    def __call__(self) -> float | Tensor:
        """2-norm over all gradients there are: see `grad_norm`."""
        at_once, kernel = self._at_once, self._kernel
        try:
            total = at_once(self._at) if at_once else -1.0 if kernel is None else self._total(kernel)
            if total >= 0.0:
                return math.sqrt(total)
        except (*stats._UNREADABLE, BufferError):
            self._kernel = self._at_once = None  # sparse, or without memory: the general way copes
        return stats.grad_norm([p.grad for p in self._parameters if p.grad is not None])

    def _total(self, kernel: Kernel) -> float:
        """Sum of squares; below zero, or NaN, if it is for the general way to say."""
        if self._asked:
            return kernel.sumsq(*self._arrays, len(self._sizes)) if kernel.gradients(self._at) else -1.0
        pointers: list[ctypes.c_uint64 | int] = []
        for parameter in self._parameters:
            gradient = parameter.grad
            if type(gradient) is not Tensor or not gradient.is_contiguous():
                return -1.0
            pointers.append(gradient.data_ptr())
        self._pointers[:] = pointers
        return kernel.sumsq(*self._arrays, len(pointers))
