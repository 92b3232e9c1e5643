"""Named ranges in torch's trace, used to identify its events afterwards."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import torch

# What the ranges are called, also for who opens the trace in a viewer.
STEP = "clew: step "  # and its number: an instant at which it begins
BACKWARD = "clew: backward"
OWN = "clew: own work"
MODULE = "module: "  # and its name

_fast: Any = getattr(getattr(torch._C, "_profiler", None), "_RecordFunctionFast", None)


def named(name: str) -> AbstractContextManager[Any]:
    """A range of that name, as cheap as this torch has them."""
    made: AbstractContextManager[Any] = (
        _fast(name) if _fast is not None else torch.autograd.profiler.record_function(name)
    )
    return made


def profiler_is_on() -> bool:
    """Whether some profiler of torch's records this thread now."""
    asked = getattr(torch.autograd, "_profiler_enabled", None)
    return bool(asked()) if asked is not None else False
