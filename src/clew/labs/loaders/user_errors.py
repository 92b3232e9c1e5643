"""Short descriptions of errors in the user's code, with the line where they were raised."""

from __future__ import annotations

import linecache
from types import TracebackType

from clew.hooks.entry.user_line import USER, kind_of
from clew.records.sample_views import ErrorFrame

MOST_FRAMES = 8


def said(error: BaseException) -> str:
    """`KeyError: 'label'`, in one line."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:300]}" if lines else type(error).__name__


def users_frames(traceback: TracebackType | None) -> tuple[ErrorFrame, ...]:
    """The user's own lines that the error passed through, innermost last."""
    found: list[ErrorFrame] = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if kind_of(code.co_filename) == USER:
            text = linecache.getline(code.co_filename, traceback.tb_lineno).strip()
            found.append(ErrorFrame(code.co_filename, traceback.tb_lineno, code.co_name, text))
        traceback = traceback.tb_next
    return tuple(found[-MOST_FRAMES:])
