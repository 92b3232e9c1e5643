"""Opens and closes the windows of a run: a few short ones, spread over a run of unknown length.

After a warm-up comes a round of windows, one of each kind, repeated at growing distances. A short
round runs at the very beginning, for scripts that end before the warm-up does.

A window is anything with `start(step)`, `mark(step)` and `stop(whole)`; at most one is open. Everything
here is called between two steps, on the training thread.
"""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Protocol

from clew.hooks.entry.guard import Guard
from clew.hooks.steps.watcher import Watcher

WARM_UP = 5  # steps, if the length of the run is unknown
WARM_UP_SHARE = 0.1  # of the run, if its length is known
MOST_WARM_UP = 50
EARLY = 1  # the step of the early round: the first step does one-time work
GROWTH = 8  # factor by which the distance between rounds grows
DETAIL_SECONDS = 2.0  # seconds that a detailed window takes, at most
STACKS_SECONDS = 1.0  # seconds that stacks are sampled for, at least
MOST_STACK_STEPS = 400
UNRECORDED = 10  # steps after a detailed window in which nothing is recorded: these are timed

DETAIL, STACKS, WATCH, MEMORY, CALLS = "detail", "stacks", "watch", "memory", "calls"
# These use torch's profiler. Between two of them a step must pass: a range that was entered under one and
# is left under the next (an optimizer's step, in which we are called) writes into memory that is gone.
TRACED = (DETAIL, MEMORY)


@dataclass
class Schedule:
    """Which window comes next, when, and how long it is."""

    rounds: int
    steps: int  # of a window, if they are short enough
    kinds: tuple[str, ...] = (DETAIL, STACKS, WATCH, MEMORY)
    known: int | None = None  # steps of the whole run
    warm: bool = True  # False: nothing to wait for
    _queue: list[tuple[int, str, bool]] = field(default_factory=list)  # not before this step, kind, early

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
        """The first step at which a window may begin."""
        return self._queue[0][0] if self._queue else sys.maxsize

    def take(self, step: int, seconds: float) -> tuple[str, int, bool] | None:
        """A window that begins with this step: its kind, its steps, and whether it is an early one."""
        if self.kind(step) is None:
            return None
        _, kind, early = self._queue.pop(0)
        return kind, 1 if early else self.length(kind, seconds), early

    def kind(self, step: int) -> str | None:
        """The kind of window that would begin with this step."""
        while self._queue and self._is_past(step):
            self._queue.pop(0)
        return self._queue[0][1] if self._queue and step >= self._queue[0][0] else None

    def closed(self, kind: str, early: bool, step: int) -> None:
        """A window ended before this step. Some steps are always left to be timed after it."""
        if kind == DETAIL and not early and self._queue:
            first, following, is_early = self._queue[0]
            self._queue[0] = max(first, step + UNRECORDED), following, is_early

    def drop(self, kind: str) -> None:
        """No more windows of this kind."""
        self._queue = [entry for entry in self._queue if entry[1] != kind]

    def _is_past(self, step: int) -> bool:
        """An early window that comes after the end of the warm-up."""
        first, _, early = self._queue[0]
        main = next((start for start, _, e in self._queue if not e), sys.maxsize)
        return early and step >= main and first < main

    def length(self, kind: str, seconds: float) -> int:
        """The number of steps of a window, given the duration of a step."""
        if kind == MEMORY:
            return 1
        if seconds <= 0:
            return self.steps
        if kind == STACKS:
            return min(max(math.ceil(STACKS_SECONDS / seconds), self.steps, 1), MOST_STACK_STEPS)
        return max(min(self.steps, int(DETAIL_SECONDS / seconds)), 1)


class Window(Protocol):
    """One stretch of steps, recorded in one way."""

    @property
    def over(self) -> bool:
        """Whether it has ended by itself."""
        ...

    def start(self, step: int) -> None: ...
    def mark(self, step: int) -> None: ...
    def stop(self, whole: bool) -> None: ...


@contextlib.contextmanager
def off_the_clock(watcher: Watcher, guard: Guard) -> Iterator[None]:
    """Work between two steps that belongs to no step, and is not part of the budget."""
    began = perf_counter()
    try:
        yield
    finally:
        if watcher.times_listeners:
            guard.seconds -= perf_counter() - began
        watcher.clock.restart()


class Skipped(Exception):  # noqa: N818 - says why a window was not opened
    """This window is not opened; a later one may be."""


class Windows:
    """Decides at the beginning of every step; `due` is the next step that must be reported."""

    def __init__(
        self,
        schedule: Schedule,
        make: Callable[[str, bool], Window],  # of this kind; an early one?
        failed: Callable[[str, Exception], None],
    ) -> None:
        self.schedule = schedule
        self._failed = failed  # called with a kind of window that does not work: no more of it are opened
        self._kind, self._early = "", False
        self.due = schedule.next - 1
        self.notes: list[str] = []
        self.profiled: set[int] = set()  # steps that were in some window
        self.slowed: set[int] = set()  # those of them that take longer for it
        self._make = make
        self._open: Window | None = None
        self._ends = 0
        self._reported: tuple[int, float] | None = None
        self._seconds = 0.0

    def is_near(self, step: int) -> bool:
        """Whether the step after this one will, or may, be in a window."""
        return self._open is not None or step + 1 >= self.schedule.next

    def step_begins(self, step: int) -> None:
        """Close the window that has had its steps; open the next if it is time."""
        self._time(step)
        was_open = self._open is not None
        if self._open is not None:
            self._note(step)
            self._safely(self._open.mark, step)
        if self._open is not None and (step >= self._ends or self._open.over):
            self._close(whole=True)
            self.schedule.closed(self._kind, self._early, step)
        again = was_open and self._kind in TRACED and self.schedule.kind(step) in TRACED
        if self._open is None and not again:
            self._begin(step)
        self._reported = (step, perf_counter())
        self.due = step + 1 if self._open is not None else max(self.schedule.next - 1, step + 1)

    def _time(self, step: int) -> None:
        """How long a step takes now, from one report to the next."""
        if self._reported is not None and step > self._reported[0]:
            self._seconds = (perf_counter() - self._reported[1]) / (step - self._reported[0])

    def _begin(self, step: int) -> None:
        taken = self.schedule.take(step, self._seconds)
        if taken is None:
            return
        self._kind, steps, self._early = taken
        self._ends = step + steps
        try:
            window = self._make(self._kind, self._early)
            window.start(step)
        except Skipped as skipped:
            self.notes += [str(skipped)] if str(skipped) else []
        except Exception as error:  # noqa: BLE001 - one failing kind must not affect the others
            self._give_up(error)
        else:
            self._open = window
            self._note(step)

    def _note(self, step: int) -> None:
        self.profiled.add(step)
        if self._kind in (*TRACED, CALLS):
            self.slowed.add(step)

    def _close(self, whole: bool) -> None:
        window, self._open = self._open, None
        if window is not None:
            self._safely(window.stop, whole)

    def _safely(self, action: Callable[[Any], None], argument: Any) -> None:
        try:
            action(argument)
        except Exception as error:  # noqa: BLE001 - see above
            window, self._open = self._open, None
            with contextlib.suppress(Exception):
                if window is not None:
                    window.stop(False)
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        self.schedule.drop(self._kind)
        self._failed(self._kind, error)

    def finish(self) -> None:
        """The run is over, perhaps in the middle of a step."""
        self._close(whole=False)
