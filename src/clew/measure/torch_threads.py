"""Torch's threads, used to read large tensors in parallel.

They are torch's own: the OpenMP library that torch has loaded calls the kernel's loop on its team. If there
is none (another backend, another platform), and in a forked child, which has no team, the calling thread
reads alone.
"""

from __future__ import annotations

import ctypes
import os
from functools import lru_cache
from pathlib import Path

import torch

from clew.measure.kernel.compiled_library import Kernel


class Team:
    """As many threads as torch has at the moment."""

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
