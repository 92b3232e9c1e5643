"""Where the parameters of an optimizer lie, or their gradients: looked up by the kernel in one call."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from clew.capture import stats

_CAPSULE = b"dlpack_exchange_api"


class Request(ctypes.Structure):
    """What kernel.c needs to look them up by itself."""

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


class Addresses:
    """Of a fixed set of parameters. What a gradient shares with its parameter is looked up once."""

    def __init__(self, parameters: Sequence[Tensor], gradients: bool) -> None:
        self.parameters = list(parameters)
        self._gradients = gradients
        codes = [stats._CODES.get(p.dtype) if p.is_cpu else None for p in self.parameters]
        self.kernel = stats._KERNEL if codes and None not in codes else None
        n = self.count = len(self.parameters)
        self._pointers = (ctypes.c_uint64 * n)()
        self.sizes = (ctypes.c_int64 * n)(*(p.numel() for p in self.parameters))
        self._codes = (ctypes.c_uint8 * n)(*(code or 0 for code in codes))
        address = ctypes.addressof
        self.arrays = (address(self._pointers), address(self.sizes), address(self._codes))
        self.request: int | None = None  # for the kernel, which asks torch itself
        if self.kernel is not None and _VIEW is not None:
            self.request = self._prepared(_VIEW)

    def _prepared(self, view: int) -> int:
        python = ctypes.pythonapi
        self._objects = (ctypes.c_void_p * self.count)(*map(id, self.parameters))
        self._request = Request(
            attribute=_address(python.PyObject_GetAttr),
            type_of=_address(python.PyObject_Type),
            release=_address(python.Py_DecRef),
            view=view,
            name=id(_NAME) if self._gradients else None,
            tensor=id(Tensor) if self._gradients else id(torch.nn.Parameter),
            parameters=ctypes.addressof(self._objects),
            pointers=self.arrays[0],
            counts=self.arrays[1],
            dtypes=self.arrays[2],
            n=self.count,
        )
        return ctypes.addressof(self._request)

    def find(self) -> bool:
        """Whether all are there, plain and dense; then `arrays` tell the kernel where."""
        if self.kernel is None:
            return False
        if self.request is not None:
            return bool(self.kernel.find(self.request))
        pointers: list[ctypes.c_uint64 | int] = []
        plain = Tensor if self._gradients else torch.nn.Parameter
        for parameter in self.parameters:
            tensor = parameter.grad if self._gradients else parameter
            if type(tensor) is not plain or not tensor.is_contiguous():
                return False
            pointers.append(tensor.data_ptr())
        self._pointers[:] = pointers
        return True
