"""Large tensors are read by all of torch's threads.

They are torch's own: the OpenMP library that it has loaded is asked to call the kernel's loop on its
team. Where there is none (another backend, another platform), and in a forked child, whose team did
not come along, the calling thread reads alone.
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
        """Called now and then: the program may have set another number."""
        threads = torch.get_num_threads()
        if threads != self._threads and self._kernel is not None and os.getpid() == self._process:
            self._threads = threads
            self._kernel.team(*team_of_torch(), threads)

    def _alone(self) -> None:
        if self._kernel is not None:
            self._kernel.team(None, None, 1)


@lru_cache(maxsize=1)
def team_of_torch() -> tuple[int | None, int | None]:
    """Where `GOMP_parallel` and `omp_get_thread_num` are, as torch itself would find them; None: nowhere."""
    if not torch.backends.openmp.is_available():
        return None, None
    for name in ("libtorch_cpu.so", "libtorch_cpu.dylib"):
        library = Path(torch.__file__).parent / "lib" / name
        if library.exists():
            try:
                found = ctypes.CDLL(str(library))  # functions are looked up in what it is linked with, too
                parallel, number = found.GOMP_parallel, found.omp_get_thread_num
            except (OSError, AttributeError):
                return None, None
            return ctypes.cast(parallel, ctypes.c_void_p).value, ctypes.cast(number, ctypes.c_void_p).value
    return None, None
