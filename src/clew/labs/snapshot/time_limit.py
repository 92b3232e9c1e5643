"""Running the user's code again may take too long, be impossible, or fail: the clock, and the exceptions."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType

from clew.hooks.entry.user_line import USER, kind_of

MOST_TEXT = 240  # characters of an error that are shown


class CannotJudge(Exception):  # noqa: N818 - reads as what it is: `raise CannotJudge("no loader")`
    """Not possible for this program: why, and the line of code that would change that."""

    def __init__(self, reason: str, hint: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint


class OutOfTime(Exception):  # noqa: N818
    """The time given to the experiment is used up."""


@dataclass
class Clock:
    """The time an experiment has, from now on; `now` is replaced in tests."""

    limit: float  # seconds
    now: Callable[[], float] = time.monotonic
    on_progress: Callable[[float], None] | None = None

    def __post_init__(self) -> None:
        self.began = self.now()

    @property
    def left(self) -> float:
        return self.limit - (self.now() - self.began)

    def tick(self, done: float = 0.0) -> None:
        """Call at least once per training step: reports progress (0 to 1), and raises when time is up."""
        if self.on_progress is not None:
            self.on_progress(done)
        if self.left <= 0:
            raise OutOfTime


def first_line(error: BaseException) -> str:
    """The first line of its message, or its type if it has none."""
    return (str(error).splitlines() or [type(error).__name__])[0]


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
