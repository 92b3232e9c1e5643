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

NO_ARGUMENTS, ONE_ARGUMENT, ARGUMENTS = 0x0004, 0x0008, 0x0080  # METH_NOARGS, METH_O, METH_FASTCALL
# Of the library's functions; the others take nothing.
_TAKING = dict.fromkeys(("number", "measure", "backward_entered", "scheduler_stepped"), ONE_ARGUMENT)
_TAKING |= dict.fromkeys(("batch_delivered", "forward_entered", "forward_left"), ARGUMENTS)
_TAKING |= dict.fromkeys(("update_entered", "update_left"), ARGUMENTS)
_NAME = b"clew"  # of the capsules, as the library asks for them
_EXCHANGE = b"dlpack_exchange_api"
# Functions of our own: types declared on those of `ctypes.pythonapi` would change them for the program too.
_PYTHON = ctypes.PyDLL("python", handle=ctypes.pythonapi._handle)

# Functions of the interpreter, in the order of python.h.
_CALLED = {
    "attribute": "PyObject_GetAttr",
    "set_attribute": "PyObject_SetAttr",
    "type_of": "PyObject_Type",
    "release": "Py_DecRef",
    "keep": "Py_IncRef",
    "error": "PyErr_Occurred",
    "forget": "PyErr_Clear",
    "number": "PyFloat_FromDouble",
    "as_number": "PyFloat_AsDouble",
    "as_integer": "PyLong_AsLongLong",
    "call": "PyObject_CallNoArgs",
    "call_with": "PyObject_CallOneArg",
    "call_all": "PyObject_CallFunctionObjArgs",
    "tuple_size": "PyTuple_Size",
    "tuple_item": "PyTuple_GetItem",
    "list_size": "PyList_Size",
    "list_item": "PyList_GetItem",
    "dict_size": "PyDict_Size",
    "dict_item": "PyDict_GetItem",
    "frame": "PyEval_GetFrame",
    "thread": "PyThread_get_thread_ident",
    "pointer": "PyCapsule_GetPointer",
    "let_go": "PyEval_SaveThread",
    "take_back": "PyEval_RestoreThread",
}


class Interpreter(ctypes.Structure):
    """What the library calls, and the objects that it gives back; as python.h has it."""

    _fields_ = [(name, ctypes.c_void_p) for name in (*_CALLED, "view", "none", "yes", "no", "real", "tensor")]


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
    try:
        functions = {field: _address(getattr(_PYTHON, name)) for field, name in _CALLED.items()}
    except AttributeError:  # an interpreter that has dropped one
        return None
    objects = {"none": None, "yes": True, "no": False, "real": float, "tensor": torch.Tensor}
    return Interpreter(view=view, **functions, **{field: id(thing) for field, thing in objects.items()})


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
            flags = _TAKING.get(name, NO_ARGUMENTS)
            self._methods[name] = _Method(name.encode(), _address(self._library[f"clew_{name}"]), flags, None)
        itself = None if about is None else wrap(about, _NAME, None)
        made: Callable[..., Any] = make(ctypes.addressof(self._methods[name]), itself, None)
        return made


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0
