"""Describes an exception of replayed user code in one line."""

from __future__ import annotations

from types import TracebackType

from clew.hooks.entry.user_line import USER, kind_of

MOST_TEXT = 240  # characters of an error that are shown


def failure(error: BaseException) -> str:
    """One line for an exception: the user's code failed on replay, or the experiment itself failed."""
    first = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    text = f"{type(error).__name__}: {first}" if first else type(error).__name__
    users = _passed_user_code(error.__traceback__)
    what = "running your step a second time failed" if users else "the experiment itself failed"
    return f"{what}: {text[:MOST_TEXT]}"


def _passed_user_code(trace: TracebackType | None) -> bool:
    while trace is not None:
        if kind_of(trace.tb_frame.f_code.co_filename) == USER:
            return True
        trace = trace.tb_next
    return False
