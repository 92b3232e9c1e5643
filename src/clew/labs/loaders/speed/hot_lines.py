"""The user's lines on which reading samples spends its time, found by sampling Python's stack."""

from __future__ import annotations

import linecache
from collections import Counter
from collections.abc import Callable
from time import perf_counter
from typing import Any

from clew.hooks.entry.user_line import USER, kind_of
from clew.records.loader_speed import HotLine

INTERVAL = 0.001  # seconds between two samples
MOST_LINES = 5
LEAST_SHARE = 0.05
FEWEST_LOOKS = 20  # with fewer, shares mean nothing


def hot_lines(read: Callable[[], Any], seconds: float) -> tuple[HotLine, ...]:
    """Read repeatedly for about this long; the lines by their share, including what they call.

    A line counts when it is the user's innermost line. Empty if another sampler is already running.
    """
    from pyinstrument import Profiler

    profiler = Profiler(interval=INTERVAL, async_mode="disabled")
    try:
        profiler.start()
    except RuntimeError:  # there may be only one in a thread
        return ()
    began = perf_counter()
    try:
        while perf_counter() - began < seconds and read() is not None:
            pass
    finally:
        session = profiler.stop()
    return _summed(session.frame_records)


def _summed(records: Any) -> tuple[HotLine, ...]:
    if len(records) < FEWEST_LOOKS:
        return ()
    spent: Counter[tuple[str, int]] = Counter()
    for stack, seconds in records:
        inner = stack[_reading_at(stack) + 1 :]  # the program that called us is further out
        place = next((found for frame in reversed(inner) if (found := _place(frame))), None)
        if place is not None:
            spent[place] += seconds
    total = sum(spent.values())  # the rest does not belong to the dataset
    return tuple(
        HotLine(file, line, linecache.getline(file, line).strip()[:120], seconds / total)
        for (file, line), seconds in spent.most_common(MOST_LINES)
        if seconds / total >= LEAST_SHARE
    )


def _reading_at(stack: Any) -> int:
    """Of the frame of `hot_lines`."""
    return next(
        (n for n, frame in enumerate(stack) if frame.startswith(f"hot_lines\x00{__file__}")), len(stack)
    )


def _place(frame: str) -> tuple[str, int] | None:
    """File and line of a user frame, from the sampler's text for it."""
    described, _, attributes = frame.partition("\x01")
    words = described.split("\x00")
    if len(words) != 3 or words[1].startswith("<") or kind_of(words[1]) != USER:
        return None
    line = next((one[1:] for one in attributes.split("\x01") if one[:1] == "l"), words[2])
    return (words[1], int(line)) if line.isdigit() else None
