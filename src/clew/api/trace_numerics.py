"""`clew.trace_numerics`: checks a block of code for NaN and infinity, with or without `clew run`.

with clew.trace_numerics(model) as trace:
    loss = criterion(model(x), y)
    loss.backward()
print(trace.report())     # or trace.check(), which raises
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from clew.labs.replay.numerics_report import LEVELS, NumericsTrace
from clew.labs.replay.numerics_report import NonFiniteError as NonFiniteError


def trace_numerics(
    model: nn.Module | None = None,
    *,
    nan: bool = True,
    inf: bool = True,
    level: str = "op",
    allow: str | Sequence[str] = (),
) -> NumericsTrace:
    """Check every operation (or layer) that runs inside the `with` block, forward and backward.

    `allow` lists sites that may produce non-finite values: module paths, operations, `file.py:line`.
    """
    if level not in LEVELS:
        raise ValueError(f"level is 'op' or 'layer', not {level!r}")
    if model is not None and not isinstance(model, nn.Module):
        raise TypeError(f"trace_numerics takes a torch.nn.Module, not {type(model).__name__}")
    return NumericsTrace(model, nan=nan, inf=inf, level=level, allow=allow)
