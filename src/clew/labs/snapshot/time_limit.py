"""Time limits for running the user's code again, and the exception that says why something can't be tried."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field


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
    """The time an experiment has; `now` is replaced in tests."""

    limit: float  # seconds
    now: Callable[[], float] = time.monotonic
    on_progress: Callable[[float], None] | None = None
    began: float = field(default=0.0)

    def start(self) -> None:
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
