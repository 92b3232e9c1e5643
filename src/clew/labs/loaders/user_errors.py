"""Short descriptions of errors in the user's code, with the line where they were raised."""

from __future__ import annotations

import linecache
import re
from traceback import walk_tb
from types import TracebackType

from clew.hooks.entry.user_line import USER, kind_of
from clew.records.sample_views import ErrorFrame

MOST_FRAMES = 8


def error_line(error: BaseException) -> str:
    """`KeyError: 'label'`, in one line."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:300]}" if lines else type(error).__name__


def worker_error_line(error: BaseException) -> str:
    """The same from the last line: a worker's exception has the worker's traceback as its message."""
    kind, line = type(error).__name__, last_line(str(error))[:200]
    return line if line.startswith(f"{kind}:") else f"{kind}: {line}"


def last_line(message: str) -> str:
    """The original error, at the end of a worker's traceback."""
    lines = [line for line in message.splitlines() if line.strip()]
    return lines[-1].strip() if lines else ""


def users_frames(traceback: TracebackType | None) -> tuple[ErrorFrame, ...]:
    """The user's own lines that the error passed through, innermost last."""
    found: list[ErrorFrame] = []
    for frame, line in walk_tb(traceback):
        code = frame.f_code
        if kind_of(code.co_filename) == USER:
            text = linecache.getline(code.co_filename, line).strip()
            found.append(ErrorFrame(code.co_filename, line, code.co_name, text))
    return tuple(found[-MOST_FRAMES:])


def frames_in_text(message: str) -> tuple[ErrorFrame, ...]:
    """The user's lines in a worker's traceback."""
    found = re.findall(r'File "([^"]+)", line (\d+), in (\S+)\n\s+(.*)', message)
    frames = [ErrorFrame(f, int(n), where, code) for f, n, where, code in found if kind_of(f) == USER]
    return tuple(frames[-MOST_FRAMES:])
