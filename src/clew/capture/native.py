"""Functions of the kernel as functions of Python's own kind.

A call through ctypes costs microseconds where it is made once a step, from cold caches: more than
what is called. The interpreter can make a built-in function out of the address of any C function of
the right form; the kernel needs no Python header for that, only the addresses of what it calls.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

NO_ARGUMENTS, ONE_ARGUMENT = 0x0004, 0x0008  # METH_NOARGS, METH_O
TAKING_A_TENSOR = ("number", "measure")  # of the kernel's functions; the others take nothing
_NAME = b"clew"  # of the capsules, as kernel.c asks for them
_EXCHANGE = b"dlpack_exchange_api"
# Functions of our own: types declared on those of `ctypes.pythonapi` would change them for the program too.
_PYTHON = ctypes.PyDLL("python", handle=ctypes.pythonapi._handle)


class Interpreter(ctypes.Structure):
    """What kernel.c calls, and the objects that it gives back."""

    _fields_ = [
        ("attribute", ctypes.c_void_p),
        ("type_of", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("keep", ctypes.c_void_p),
        ("error", ctypes.c_void_p),
        ("forget", ctypes.c_void_p),
        ("number", ctypes.c_void_p),
        ("pointer", ctypes.c_void_p),
        ("let_go", ctypes.c_void_p),
        ("take_back", ctypes.c_void_p),
        ("view", ctypes.c_void_p),
        ("none", ctypes.c_void_p),
        ("yes", ctypes.c_void_p),
        ("no", ctypes.c_void_p),
        ("tensor", ctypes.c_void_p),
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


class _Method(ctypes.Structure):
    """PyMethodDef; a built-in function refers to it for ever."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


def view_function() -> int | None:
    """Torch's function that tells where a tensor lies; None where torch has none, or of another standard."""
    capsule = getattr(Tensor, "__dlpack_c_exchange_api__", None)
    if capsule is None or sys.implementation.name != "cpython":
        return None
    read = _PYTHON.PyCapsule_GetPointer
    read.argtypes, read.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_void_p
    try:
        api = _ExchangeApi.from_address(read(capsule, _EXCHANGE))
    except (ValueError, TypeError):  # a capsule of another name, or none
        return None
    view: int | None = api.view
    return view if api.major == 1 else None


def interpreter() -> Interpreter | None:
    """For this process; None where the kernel can't ask torch itself."""
    view = view_function()
    if view is None:
        return None
    python = _PYTHON
    return Interpreter(
        attribute=_address(python.PyObject_GetAttr),
        type_of=_address(python.PyObject_Type),
        release=_address(python.Py_DecRef),
        keep=_address(python.Py_IncRef),
        error=_address(python.PyErr_Occurred),
        forget=_address(python.PyErr_Clear),
        number=_address(python.PyFloat_FromDouble),
        pointer=_address(python.PyCapsule_GetPointer),
        let_go=_address(python.PyEval_SaveThread),
        take_back=_address(python.PyEval_RestoreThread),
        view=view,
        none=id(None),
        yes=id(True),
        no=id(False),
        tensor=id(torch.Tensor),
    )


class Natives:
    """Makes functions of Python's out of the kernel's."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        self._methods: dict[str, _Method] = {}

    def function(self, name: str, about: int | None = None) -> Callable[..., Any]:
        """`clew_<name>`, bound to the structure at this address if it is about one.

        Whoever holds it must hold the structure too.
        """
        wrap, make = _PYTHON.PyCapsule_New, _PYTHON.PyCFunction_NewEx
        wrap.argtypes, wrap.restype = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p), ctypes.py_object
        make.argtypes, make.restype = (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p), ctypes.py_object
        if name not in self._methods:
            flags = ONE_ARGUMENT if name in TAKING_A_TENSOR else NO_ARGUMENTS
            self._methods[name] = _Method(name.encode(), _address(self._library[f"clew_{name}"]), flags, None)
        itself = None if about is None else wrap(about, _NAME, None)
        made: Callable[..., Any] = make(ctypes.addressof(self._methods[name]), itself, None)
        return made


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0
