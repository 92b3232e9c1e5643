"""Opens and closes the windows of a run as scheduled, and reports every step to them.

A window is anything with `start(step)`, `mark(step)` and `stop(whole)`; at most one is open. Everything
here is called between two steps, on the training thread.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any, Protocol

from clew.labs.profiler.window_schedule import CALLS, DETAIL, MEMORY, Schedule

# These use torch's profiler. Between two of them a step must pass: a range that was entered under one and
# is left under the next (an optimizer's step, in which we are called) writes into memory that is gone.
TRACED = (DETAIL, MEMORY)


class Window(Protocol):
    """One stretch of steps that is looked at in one way."""

    @property
    def over(self) -> bool:
        """It has ended by itself."""
        ...

    def start(self, step: int) -> None: ...
    def mark(self, step: int) -> None: ...
    def stop(self, whole: bool) -> None: ...


class Skipped(Exception):  # noqa: N818 - says why a window was not opened
    """Not now; the next one may be."""


class Windows:
    """Decides at every step that begins; `due` is the next one that must be told."""

    def __init__(
        self,
        schedule: Schedule,
        make: Mapping[str, Callable[[bool], Window]],
        failed: Callable[[str, Exception], None],
    ) -> None:
        self.schedule = schedule
        self._failed = failed  # told of a kind of window that does not work: there are no more of it
        self._kind, self._early = "", False
        self.due = schedule.next - 1
        self.notes: list[str] = []
        self.looked_at: set[int] = set()  # steps that were in some window
        self.slowed: set[int] = set()  # those that take longer for it
        self._make = make
        self._open: Window | None = None
        self._ends = 0
        self._told: tuple[int, float] | None = None
        self._seconds = 0.0

    @property
    def is_open(self) -> bool:
        return self._open is not None

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
        self._told = (step, perf_counter())
        self.due = step + 1 if self._open is not None else max(self.schedule.next - 1, step + 1)

    def _time(self, step: int) -> None:
        """How long a step takes now, from one telling to the next."""
        if self._told is not None and step > self._told[0]:
            self._seconds = (perf_counter() - self._told[1]) / (step - self._told[0])

    def _begin(self, step: int) -> None:
        taken = self.schedule.take(step, self._seconds)
        if taken is None:
            return
        self._kind, steps, self._early = taken
        self._ends = step + steps
        try:
            window = self._make[self._kind](self._early)
            window.start(step)
        except Skipped as skipped:
            self.notes += [str(skipped)] if str(skipped) else []
        except Exception as error:  # noqa: BLE001 - one kind that fails must not take the others along
            self._give_up(error)
        else:
            self._open = window
            self._note(step)

    def _note(self, step: int) -> None:
        self.looked_at.add(step)
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
        """The run is over, maybe in the midst of a step."""
        self._close(whole=False)
