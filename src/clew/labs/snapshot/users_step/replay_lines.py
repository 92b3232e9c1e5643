"""The line of the user's source that an operation comes from, up to where a replay began."""

from __future__ import annotations

import linecache
import sys
from types import CodeType, FrameType

from clew.hooks.entry.user_line import HIDDEN, LIBRARY, USER, kind_of
from clew.records.site import Line
from clew.records.version import DEMO, PACKAGE

BOUNDARIES: set[CodeType] = set()  # frames below these are not part of the replay


def line_now() -> Line:
    """The innermost user frame, at any depth; if there is none, an installed library's."""
    frame: FrameType | None = sys._getframe(1)
    fallback: Line = (None, None)
    while frame is not None and frame.f_code not in BOUNDARIES:
        kind = kind_of(frame.f_code.co_filename)
        if kind == USER:
            return frame.f_code.co_filename, frame.f_lineno
        if kind == LIBRARY and fallback[0] is None:
            fallback = (frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back
    return fallback


def in_replay() -> bool:
    """Whether a step is being replayed now."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code in BOUNDARIES:
            return True
        frame = frame.f_back
    return False


def called_by_clew() -> bool:
    """Whether the op that a dispatch mode asks about is one of Clew's own measurements: the nearest frame
    outside torch that called it is Clew's."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_name != "__torch_dispatch__":
        frame = frame.f_back  # the mode that is asking
    frame = frame.f_back if frame is not None else None
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith(PACKAGE) and not code.co_filename.startswith(DEMO):
            if code.co_name != "__torch_function__":  # it passes on what the user called
                return True
        elif kind_of(code.co_filename) != HIDDEN:
            return False
        frame = frame.f_back
    return False


def code_at(line: Line) -> str | None:
    """The source on a line, if the file exists."""
    if line[0] is None or line[1] is None:
        return None
    return linecache.getline(line[0], line[1]).strip() or None
