"""Clew: a debugger for neural-network training.

    $ clew run train.py        # or, from Python:
    with clew.attach(model, optimizer):
        train()

Importing this package imports neither torch nor anything else that is heavy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"  # before the imports below, which want to know it

# Not lazily: the function `attach` must come after the room of that name, or the import system
# would put the room in its place.
from clew.session import attach, config, log

if TYPE_CHECKING:
    from clew.store.reader import open_run as open_run

__all__ = ["__version__", "attach", "config", "log", "open_run"]


def __getattr__(name: str) -> Any:
    if name == "open_run":  # needs numpy, which `clew run` of a script without torch does not
        from clew.store.reader import open_run

        return open_run
    raise AttributeError(f"module 'clew' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
