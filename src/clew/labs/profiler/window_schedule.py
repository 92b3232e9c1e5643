"""When to profile: a few short windows of steps, spread over a run of unknown length.

After a warm-up comes a round of windows, one of each kind, and again at growing distances. A short
round is made right at the beginning, for scripts that end before the warm-up does.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field

WARM_UP = 5  # steps, of a run whose length is not known
WARM_UP_SHARE = 0.1  # of one whose length is
MOST_WARM_UP = 50
EARLY = 1  # the step of the early round: the first one does what is done once
GROWTH = 8  # of the distance between rounds
DETAIL_SECONDS = 2.0  # that a window in detail takes, at most about
STACKS_SECONDS = 1.0  # that stacks are sampled for, at least about
MOST_STACK_STEPS = 400
MOST_EVENTS = 60_000  # in a window
PLAIN = 10  # steps after a window in detail in which nothing is looked at: they are the ones that are timed

DETAIL, STACKS, WATCH, MEMORY, CALLS = "detail", "stacks", "watch", "memory", "calls"


@dataclass
class Schedule:
    """Which window comes next, when, and how long it is."""

    rounds: int
    steps: int  # of a window, if they are short enough
    kinds: tuple[str, ...] = (DETAIL, STACKS, WATCH, MEMORY)
    known: int | None = None  # steps of the whole run
    warm: bool = True  # False: nothing to wait for
    _queue: list[tuple[int, str, bool]] = field(default_factory=list)  # not before this step, kind, early
    events: float = 0.0  # in one step, as seen in the last window

    def __post_init__(self) -> None:
        warm_up = self._warm_up() if self.warm else 0
        if warm_up > EARLY:
            self._queue += [(EARLY, kind, True) for kind in self.kinds]
        for start in self._starts(warm_up):
            self._queue += [(start, kind, False) for kind in self.kinds]

    def _warm_up(self) -> int:
        if self.known is None:
            return WARM_UP
        return max(min(int(self.known * WARM_UP_SHARE), MOST_WARM_UP), min(WARM_UP, self.known // 3))

    def _starts(self, warm_up: int) -> list[int]:
        if self.known is not None:
            return [warm_up + (self.known - warm_up) * n // self.rounds for n in range(self.rounds)]
        return [max(warm_up, 1) * GROWTH**n if n else warm_up for n in range(self.rounds)]

    @property
    def next(self) -> int:
        """The step before which nothing is to be done."""
        return self._queue[0][0] if self._queue else sys.maxsize

    def take(self, step: int, seconds: float) -> tuple[str, int, bool] | None:
        """A window that begins with this step: its kind, its steps, and whether it is an early one."""
        if self.kind(step) is None:
            return None
        _, kind, early = self._queue.pop(0)
        return kind, 1 if early else self.length(kind, seconds), early

    def kind(self, step: int) -> str | None:
        """Of the window that would begin with this step."""
        while self._queue and self._is_past(step):
            self._queue.pop(0)
        return self._queue[0][1] if self._queue and step >= self._queue[0][0] else None

    def closed(self, kind: str, early: bool, step: int) -> None:
        """A window ended before this step. However long the others are, some steps are left to be timed."""
        if kind == DETAIL and not early and self._queue:
            first, following, is_early = self._queue[0]
            self._queue[0] = max(first, step + PLAIN), following, is_early

    def drop(self, kind: str) -> None:
        """No more windows of this kind."""
        self._queue = [entry for entry in self._queue if entry[1] != kind]

    def _is_past(self, step: int) -> bool:
        """An early window that the warm-up's end has overtaken."""
        first, _, early = self._queue[0]
        main = next((start for start, _, e in self._queue if not e), sys.maxsize)
        return early and step >= main and first < main

    def length(self, kind: str, seconds: float) -> int:
        """Steps of a window, where one step takes so long."""
        if kind == MEMORY:
            return 1
        if seconds <= 0:
            return self.steps
        if kind == STACKS:
            return min(max(math.ceil(STACKS_SECONDS / seconds), self.steps, 1), MOST_STACK_STEPS)
        fitting = max(int(DETAIL_SECONDS / seconds), 1)
        if kind == DETAIL and self.events:
            fitting = min(fitting, max(int(MOST_EVENTS / self.events), 1))
        return max(min(self.steps, fitting), 1)
