"""Loads the compiled library with the statistics loops (kernel.c), and creates Python functions from it.

The library is plain C behind ctypes, whose calls release the GIL. It does not exist if the package was built
without a C compiler; then `load()` returns None and stats.py uses torch ops.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

ABI = 8  # version of the C functions; a stale library from an older build is not called

# File names that scripts/build_kernel.py may have given it.
LIBRARY_NAMES = ("_kernel.so", "_kernel.dylib", "_kernel.dll")

NO_ARGUMENTS, ONE_ARGUMENT, ARGUMENTS = 0x0004, 0x0008, 0x0080  # METH_NOARGS, METH_O, METH_FASTCALL
# Calling conventions of the library's functions; the others take no arguments.
_TAKING = dict.fromkeys(("number", "measure", "backward_entered", "scheduler_stepped"), ONE_ARGUMENT)
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


@dataclass(frozen=True)
class Kernel:
    """The C functions, with their argument types declared; addresses are plain integers."""

    # (data, count, dtype, out, hist or None, lo, hi) -> saturated share
    stats: Callable[[int, int, int, int, int | None, float, float], float]
    # (pointers, counts, dtypes, n) -> sum of squares
    sumsq: Callable[[int, int, int, int], float]
    # (data, outer, units, inner, itemsize) -> units that are zero everywhere, -1: no memory
    units_dead: Callable[[int, int, int, int, int], int]
    # (pointers, counts, dtypes, n, rows, out, stride, hist or None)
    stats_list: Callable[[int, int, int, int, int, int, int, int | None], None]
    # (addresses of GOMP_parallel and omp_get_thread_num or None, threads)
    team: Callable[[int | None, int | None, int], None]
    natives: Natives | None  # functions that call torch directly; None if that is not possible
    level: int  # instruction set in use: 0 plain, 1 AVX2, 2 AVX-512


def load(folder: Path | None = None, level: int = 2) -> Kernel | None:
    """The kernel of this installation, or None. `CLEW_KERNEL=off` selects the torch ops instead."""
    if os.environ.get("CLEW_KERNEL") == "off":
        return None
    for name in LIBRARY_NAMES:
        path = (folder or Path(__file__).parent) / name
        if path.exists():
            return _open(path, level)
    return None


def _open(path: Path, level: int) -> Kernel | None:
    try:
        library = ctypes.CDLL(str(path))
        if library.clew_abi() != ABI:
            return None
    except (OSError, AttributeError):  # built for another platform, or not ours
        return None
    i64, f64, pointer = ctypes.c_int64, ctypes.c_double, ctypes.c_void_p
    stats, sumsq, dead = library.clew_stats, library.clew_sumsq, library.clew_units_dead
    stats.argtypes, stats.restype = (pointer, i64, ctypes.c_int, pointer, pointer, f64, f64), f64
    sumsq.argtypes, sumsq.restype = (pointer, pointer, pointer, i64), f64
    dead.argtypes, dead.restype = (pointer, i64, i64, i64, ctypes.c_int), i64
    many = library.clew_stats_list
    many.argtypes, many.restype = (pointer, pointer, pointer, i64, pointer, pointer, i64, pointer), None
    team = library.clew_team
    team.argtypes, team.restype = (pointer, pointer, ctypes.c_int), None
    natives, asked = None, interpreter()
    if asked is not None:
        library.clew_interpreter(ctypes.byref(asked))  # the library keeps a copy
        natives = Natives(library)
    chosen = int(library.clew_choose(level))
    return Kernel(stats, sumsq, dead, many, team, natives, chosen)


_TAKING |= dict.fromkeys(("batch_delivered", "forward_entered", "forward_left"), ARGUMENTS)
_TAKING |= dict.fromkeys(("update_entered", "update_left"), ARGUMENTS)


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
    """Creates Python built-in functions from the kernel's, without ctypes.

    A ctypes call made once per step, from cold caches, costs microseconds: more than the function it calls.
    The interpreter can create a built-in function from the address of any C function with the right
    signature. The kernel needs no Python header for that, only the addresses of what it calls.
    """

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


class Team:
    """Threads that read large tensors in parallel: as many as torch has at the moment.

    They are torch's own: the OpenMP library that torch has loaded calls the kernel's loop on its team. If
    there is none (another backend, another platform), and in a forked child, which has no team, the calling
    thread reads alone.
    """

    def __init__(self, kernel: Kernel | None) -> None:
        self._kernel = kernel
        self._threads = 1
        self._process = os.getpid()
        if kernel is not None and hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._alone)

    def gather(self) -> None:
        """Called at intervals: the program may have set another number of threads."""
        threads = torch.get_num_threads()
        if threads != self._threads and self._kernel is not None and os.getpid() == self._process:
            self._threads = threads
            self._kernel.team(*team_of_torch(), threads)

    def _alone(self) -> None:
        if self._kernel is not None:
            self._kernel.team(None, None, 1)


@lru_cache(maxsize=1)
def team_of_torch() -> tuple[int | None, int | None]:
    """Addresses of `GOMP_parallel` and `omp_get_thread_num`, as torch itself finds them; None if missing."""
    if not torch.backends.openmp.is_available():
        return None, None
    for name in ("libtorch_cpu.so", "libtorch_cpu.dylib"):
        library = Path(torch.__file__).parent / "lib" / name
        if library.exists():
            try:
                found = ctypes.CDLL(str(library))  # also finds functions of libraries that it is linked with
                parallel, number = found.GOMP_parallel, found.omp_get_thread_num
            except (OSError, AttributeError):
                return None, None
            return ctypes.cast(parallel, ctypes.c_void_p).value, ctypes.cast(number, ctypes.c_void_p).value
    return None, None
