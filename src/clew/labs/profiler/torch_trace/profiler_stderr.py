"""Silences messages of torch's profiler on stderr, which are of no use to the user."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator
from functools import cache
from typing import Any

import torch

LEVEL = "KINETO_LOG_LEVEL"  # read when the profiler is used for the first time in a process
SILENT = "9"
_ERROR = 2  # of c10's log levels


@contextlib.contextmanager
def quiet_start() -> Iterator[None]:
    """Around the start of a profiler: Kineto is told to be silent, unless the user has said how loud."""
    if LEVEL in os.environ:
        yield
        return
    os.environ[LEVEL] = SILENT
    try:
        yield
    finally:
        os.environ.pop(LEVEL, None)


class QuietAllocator:
    """While memory is profiled on the CPU, every thousandth free of an older block is a warning on stderr."""

    def __init__(self) -> None:
        self._before: int | None = None

    @property
    def possible(self) -> bool:
        return _log_level() is not None

    def begin(self) -> None:
        level = _log_level()
        if level is not None and level.value < _ERROR:
            self._before, level.value = level.value, _ERROR

    def end(self) -> None:
        level = _log_level()
        if level is not None and self._before is not None:
            level.value, self._before = self._before, None


@cache
def _log_level() -> Any:
    """The variable in c10 that holds it; None where there is no such thing."""
    folder = os.path.join(os.path.dirname(torch.__file__), "lib")
    for name in ("libc10.so", "libc10.dylib", "c10.dll"):
        try:
            return ctypes.c_int.in_dll(ctypes.CDLL(os.path.join(folder, name)), "FLAGS_caffe2_log_level")
        except (OSError, ValueError):
            continue
    return None
