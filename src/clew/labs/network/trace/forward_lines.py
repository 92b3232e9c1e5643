"""Lines of a network are those of its own forward, not of whatever called Clew.

Where no frame of the user's is on the stack (`clew show`: the model's class is only imported), the
nearest library's line is taken, which may be that of the command line's own library.
"""

from __future__ import annotations

import inspect
import sys
from types import FrameType

from torch import nn

from clew.hooks.entry.user_line import LIBRARY, USER, kind_of
from clew.labs.network.trace.op_tracer import Trace

Line = tuple[str | None, int | None]


def within_the_forward(trace: Trace) -> Trace:
    """Called where the forward was called: what is on the stack now is not in it."""
    outside = set(_library_lines(sys._getframe(1)))
    for call in trace.calls:
        if (call.file, call.line) in outside:
            call.file, call.line = _defined(call.module) if call.parent is None else (None, None)
    for op in trace.ops:
        if (op.file, op.line) in outside:
            op.file, op.line = None, None
    return trace


def _library_lines(frame: FrameType | None) -> list[Line]:
    found: list[Line] = []
    while frame is not None:
        if kind_of(frame.f_code.co_filename) == LIBRARY:
            found.append((frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    return found


def _defined(module: nn.Module) -> Line:
    """Where its class is, if that is the user's."""
    try:
        file = inspect.getsourcefile(type(module))
        if file is None or kind_of(file) != USER:
            return None, None
        return file, inspect.getsourcelines(type(module))[1]
    except (OSError, TypeError):
        return None, None
