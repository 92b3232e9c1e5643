"""Clew: a debugger for neural-network training.

    $ clew run train.py        # or, from Python:
    with clew.attach(model, optimizer):
        train()

Importing this package imports neither torch nor anything else that is heavy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

# Not lazily: the function `attach` must come after the room of that name, or the import system
# would put the room in its place.
from clew.attaching import attach, config, ignore, log
from clew.version import __version__

if TYPE_CHECKING:
    from clew.checks.custom import register as register
    from clew.data_report import data as data
    from clew.examining import examine as examine
    from clew.faster import batch_sizes as batch_sizes
    from clew.faster import try_faster as try_faster
    from clew.inspecting import summary as summary
    from clew.model.describing import describe as describe
    from clew.model.describing import describe_tensors as describe_tensors
    from clew.model.graphing import graph as graph
    from clew.model.visiting import visit as visit
    from clew.opening import open_run as open_run
    from clew.profile_blocks import profile as profile
    from clew.trace.api import NonFiniteError as NonFiniteError
    from clew.trace.api import trace_numerics as trace_numerics

# These need numpy or torch, which `clew run` of a script without them must not import.
_LAZY = {
    "NonFiniteError": "clew.trace.api",
    "trace_numerics": "clew.trace.api",
    "batch_sizes": "clew.faster",
    "try_faster": "clew.faster",
    "data": "clew.data_report",
    "examine": "clew.examining",
    "describe": "clew.model.describing",
    "describe_tensors": "clew.model.describing",
    "graph": "clew.model.graphing",
    "summary": "clew.inspecting",
    "visit": "clew.model.visiting",
    "open_run": "clew.opening",
    "profile": "clew.profile_blocks",
    "register": "clew.checks.custom",
}

__all__ = [
    "NonFiniteError",
    "__version__",
    "attach",
    "batch_sizes",
    "config",
    "data",
    "describe",
    "describe_tensors",
    "examine",
    "graph",
    "ignore",
    "log",
    "open_run",
    "profile",
    "register",
    "summary",
    "trace_numerics",
    "try_faster",
    "visit",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'clew' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
