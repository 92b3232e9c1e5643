"""Pyinstrument's sampling engine, without what importing the package does besides."""

from __future__ import annotations

import importlib
import sys
import threading
import warnings
from typing import Any

_lock = threading.Lock()


def stat_profiler() -> Any:
    """The function that has the interpreter call back now and then; raises ImportError.

    Importing pyinstrument adds a filter for warnings, and with it every warning that has been said once
    would be said again: the program's own must not change.
    """
    name = "pyinstrument.low_level.stat_profile"
    if name not in sys.modules:
        with _lock:
            kept, warnings.filterwarnings = warnings.filterwarnings, _nothing
            try:
                importlib.import_module(name)
            finally:
                warnings.filterwarnings = kept
    return sys.modules[name].setstatprofile


def _nothing(*_: Any, **__: Any) -> None:
    """In place of `warnings.filterwarnings`."""
