"""The memory that a process has for itself: what it maps from files, or shares, comes with the data."""

from __future__ import annotations

import os

_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


def own_memory() -> float:
    """Bytes of resident memory that is neither shared nor mapped from a file, where the system tells."""
    try:
        with open("/proc/self/statm", "rb") as file:
            fields = file.read().split()
        return float(int(fields[1]) - int(fields[2])) * _PAGE
    except (OSError, IndexError, ValueError):
        import psutil

        return float(psutil.Process().memory_info().rss)
