"""Clew: a debugger for neural-network training.

    $ clew run train.py        # or, from Python:
    with clew.attach(model, optimizer):
        train()

Importing this package imports neither torch nor anything else that is heavy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clew.session import attach as attach
    from clew.session import config as config
    from clew.session import log as log
    from clew.store.reader import open_run as open_run

__version__ = "0.1.0"

_PUBLIC = {
    "attach": "clew.session",
    "config": "clew.session",
    "log": "clew.session",
    "open_run": "clew.store.reader",
}

__all__ = ["__version__", "attach", "config", "log", "open_run"]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'clew' has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
