"""Kernel functions as Python built-in functions, without ctypes.

A ctypes call made once per step, from cold caches, costs microseconds: more than the function it calls. The
interpreter can create a built-in function from the address of any C function with the right signature. The
kernel needs no Python header for that, only the addresses of what it calls.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

NO_ARGUMENTS, ONE_ARGUMENT, ARGUMENTS = 0x0004, 0x0008, 0x0080  # METH_NOARGS, METH_O, METH_FASTCALL
# Calling conventions of the library's functions; the others take no arguments.
_TAKING = dict.fromkeys(("number", "measure", "backward_entered", "scheduler_stepped"), ONE_ARGUMENT)
_TAKING |= dict.fromkeys(("batch_delivered", "forward_entered", "forward_left"), ARGUMENTS)
_TAKING |= dict.fromkeys(("update_entered", "update_left"), ARGUMENTS)
_NAME = b"clew"  # name of the capsules that the library expects
_EXCHANGE = b"dlpack_exchange_api"
# Our own function objects: argument types declared on those of `ctypes.pythonapi` would also change them for
# the program.
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
    """The functions that the library calls and the objects that it returns; same layout as in python.h."""

    _fields_ = [(name, ctypes.c_void_p) for name in (*_CALLED, "view", "none", "yes", "no", "real", "tensor")]


class _ExchangeApi(ctypes.Structure):
    """The table of the DLPack standard; only its function that returns a view of a tensor is used."""

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
    """PyMethodDef; a built-in function refers to it forever."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


def view_function() -> int | None:
    """Torch's function that returns a tensor's address; None if torch has none, or another standard's."""
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
    """For this process; None if the kernel cannot call torch itself."""
    view = view_function()
    if view is None:
        return None
    try:
        functions = {field: _address(getattr(_PYTHON, name)) for field, name in _CALLED.items()}
    except AttributeError:  # an interpreter that has dropped one of them
        return None
    objects = {"none": None, "yes": True, "no": False, "real": float, "tensor": torch.Tensor}
    return Interpreter(view=view, **functions, **{field: id(thing) for field, thing in objects.items()})


class Natives:
    """Creates Python functions from the kernel's."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        self._methods: dict[str, _Method] = {}

    def function(self, name: str, about: int | None = None) -> Callable[..., Any]:
        """`clew_<name>`, bound to the structure at this address if one is given.

        Whoever keeps a reference to the function must keep one to the structure, too.
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
