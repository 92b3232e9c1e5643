"""Loads the compiled library with the statistics loops (kernel.c).

The library is plain C behind ctypes, whose calls release the GIL. It does not exist if the package was built
without a C compiler; then `load()` returns None and stats.py uses torch ops.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from clew.measure.kernel.native_functions import Natives, interpreter

ABI = 8  # version of the C functions; a stale library from an older build is not called

# File names that scripts/build_kernel.py may have given it.
LIBRARY_NAMES = ("_kernel.so", "_kernel.dylib", "_kernel.dll")


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
