"""Clew: a debugger for neural-network training.

    $ clew run train.py        # or, from Python:
    with clew.attach(model, optimizer):
        train()

Importing this package imports neither torch nor anything else that is heavy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from clew.api import extend
from clew.api.attach import attach, config, ignore, log
from clew.records.version import __version__

if TYPE_CHECKING:
    from clew.api.data import data as data
    from clew.api.describe import describe as describe
    from clew.api.describe import describe_tensors as describe_tensors
    from clew.api.examine import examine as examine
    from clew.api.faster import batch_sizes as batch_sizes
    from clew.api.faster import try_faster as try_faster
    from clew.api.graph import graph as graph
    from clew.api.open_run import open_run as open_run
    from clew.api.profile import profile as profile
    from clew.api.summary import summary as summary
    from clew.api.trace_numerics import NonFiniteError as NonFiniteError
    from clew.api.trace_numerics import trace_numerics as trace_numerics
    from clew.api.visit import visit as visit
    from clew.checks.custom_checks import register as register

# These need numpy or torch, which `clew run` of a script without them must not import.
_LAZY = {
    "NonFiniteError": "clew.api.trace_numerics",
    "trace_numerics": "clew.api.trace_numerics",
    "batch_sizes": "clew.api.faster",
    "try_faster": "clew.api.faster",
    "data": "clew.api.data",
    "examine": "clew.api.examine",
    "describe": "clew.api.describe",
    "describe_tensors": "clew.api.describe",
    "graph": "clew.api.graph",
    "summary": "clew.api.summary",
    "visit": "clew.api.visit",
    "open_run": "clew.api.open_run",
    "profile": "clew.api.profile",
    "register": "clew.checks.custom_checks",
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
    "extend",
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
