"""Step clock: number, time and events of the current step, and the row written at its end."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from time import perf_counter
from typing import Any

import numpy as np

from clew.hooks.entry.guard import Guard
from clew.hooks.entry.sink import Array, Sink
from clew.measure.deferred_values import Late
from clew.records import signals
from clew.records.signal_types import names
from clew.records.site import Site

STEP_SIGNALS = names(
    signals.WALL,
    signals.STEP_TIME,
    signals.TIME_DATA,
    signals.TIME_FORWARD,
    signals.TIME_BACKWARD,
    signals.TIME_OPTIMIZER,
    signals.TIME_REST,
    signals.TIME_CLEW,
    signals.BATCH_SIZE,
    signals.MEMORY_RSS,
    signals.EVENTS_PATTERN,
)


class StepColumn(IntEnum):
    """Numbers noted of one step, by their place in its row: as in the library (`measure/kernel/steps.c`).

    The first ones are the clock's, for `StepClock.write`; the others are noted by the library only.
    """

    NOW = 0  # when the step ended
    OWN = 1  # seconds that Clew took, and seconds
    WAITING = 2  # for data,
    RUNNING = 3  # in forwards,
    DERIVING = 4  # in `backward()`,
    UPDATING = 5  # and in the optimizer
    SIZE = 6  # of the batch
    EVENTS = 7  # number of the pattern; the library notes its events as digits
    LOSS = 8
    NORM = 9  # of the gradients
    RATE = 10  # learning rate


OF_CLOCK = StepColumn.EVENTS + 1  # so many columns are the clock's
_TIMED = slice(StepColumn.WAITING, StepColumn.UPDATING + 1)

MEMORY_EVERY = 0.25  # seconds between two readings of the process memory

Write = Callable[[int, float], None]

LONGEST = 256  # tokens kept before repeats are folded in place: a validation loop may be long
MOST_PATTERNS = 1_000  # for a program whose every step differs, a larger dictionary is not worth it


class StepClock:
    """Accumulates the times and counts of one step; `close` writes them and begins the next."""

    def __init__(self, sink: Sink, pattern: Pattern, guard: Guard, late: Late) -> None:
        self._sink = sink
        self._pattern = pattern
        self._guard = guard
        self.late = late
        self.table = sink.table(STEP_SIGNALS, [sink.site(Site())])
        self._began = self._ended = perf_counter()
        self.memory = MemoryReading()
        self._booked = 0.0  # guard seconds already booked to earlier steps
        self._mode_tables: dict[str, int] = {}
        self.step = 0
        self.data = self.forward = self.backward = self.optimizer = 0.0
        self.batch = 0
        self.pending_batch = 0  # batch size of a forward whose backward has not come yet
        self.modes: dict[str, float] = {}

    def defer(self, value: Any, write: Write) -> None:
        """Write a number of this step that may still be on an accelerator."""
        step = self.step
        self.late.number(value, lambda number: write(step, number))

    def restart(self) -> None:
        """Attached (again): what happened before belongs to no step."""
        self._ended = perf_counter()

    def others(self) -> float:
        """Seconds of this step booked so far, without the optimizer's."""
        return self.data + self.forward + self.backward + self._guard.seconds

    def close(self, now: float) -> tuple[float, float]:
        """End the step at `now`. Returns Clew's own seconds in it, and its total seconds."""
        self.late.end_of_step()
        step, own = self.step, self.newly_booked()
        raw: list[float] = []
        self.end(now, own, self._pattern.close(), raw)
        return own, self.write(step, raw, self.memory.read(now))

    def newly_booked(self) -> float:
        """Seconds spent in probes since the last call."""
        before, self._booked = self._booked, self._guard.seconds
        return self._booked - before

    def end(self, now: float, own: float, pattern: int, raw: list[float]) -> None:
        """End the step, and append its numbers to `raw`, for `write`, in the order of `StepColumn`."""
        raw += (now, own, *self.begun(), pattern)
        if self.modes:
            self._write_modes()
        self.step += 1

    def begun(self) -> tuple[float, float, float, float, int]:
        """Seconds and batch size of the open step so far; counting starts again from here."""
        found = (self.data, self.forward, self.backward, self.optimizer, self.batch)
        self.data = self.forward = self.backward = self.optimizer = 0.0
        self.batch = self.pending_batch = 0
        return found

    def write(self, first: int, raw: list[float] | Array, memory: float) -> float:
        """Write the rows of the steps that `end` was called for, from `first` on. Returns their seconds."""
        known = np.array(raw, "<f8").reshape(-1, OF_CLOCK)
        now, own, timed = known[:, StepColumn.NOW], known[:, StepColumn.OWN], known[:, _TIMED]
        seconds = np.diff(now, prepend=self._ended)
        rest = np.maximum(seconds - own - timed.sum(axis=1), 0.0)
        rows = np.empty((len(known), len(STEP_SIGNALS)), "<f8")
        columns = (now - self._began, seconds, *timed.T, rest, own, known[:, StepColumn.SIZE], memory)
        for number, values in enumerate(
            (*columns, known[:, StepColumn.EVENTS])
        ):  # in the order of STEP_SIGNALS
            rows[:, number] = values
        began, self._ended = self._ended, float(now[-1])
        self._sink.rows(self.table, np.arange(first, first + len(rows)), rows)
        return self._ended - began

    def note_modes(self, root: str, steps: Array) -> None:
        """Record the steps, from this one on, in which a model trained in training mode."""
        self._write_modes()
        if len(steps):
            self._sink.rows(self._mode_table(root), steps, np.ones((len(steps), 1)))

    def _write_modes(self) -> None:
        for root, training in self.modes.items():
            self._sink.row(self._mode_table(root), self.step, (training,))
        self.modes = {}

    def _mode_table(self, root: str) -> int:
        table = self._mode_tables.get(root)
        if table is None:
            site = self._sink.site(Site("", phase="train", root=root))
            table = self._mode_tables[root] = self._sink.table([signals.MODE_TRAINING.name], [site])
        return table


class MemoryReading:
    """The process's resident memory, read at intervals."""

    def __init__(self) -> None:
        self._page = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
        self._value = float("nan")
        self._read_at = -1.0

    def read(self, now: float) -> float:
        if now - self._read_at >= MEMORY_EVERY:
            self._read_at = now
            self._value = self._measure()
        return self._value

    def _measure(self) -> float:
        try:
            with open("/proc/self/statm", "rb") as file:
                return float(file.read().split()[1]) * self._page
        except OSError:
            return _peak_memory()


def _peak_memory() -> float:
    """The peak: without /proc, the standard library offers nothing better."""
    try:
        import resource
        import sys
    except ImportError:
        return float("nan")
    unit = 1 if sys.platform == "darwin" else 1024
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit)


class Pattern:
    """Collects the tokens of one step, and gives equal steps an equal number."""

    def __init__(self, announce: Callable[[int, str], None]) -> None:
        self._announce = announce
        self._tokens: list[str] = []
        self._numbers: dict[tuple[str, ...], int] = {}
        self._known: dict[str, int] = {}

    @staticmethod
    @functools.cache
    def token(letter: str, index: int) -> str:
        """Token of an event; the first model and optimizer have no number."""
        return letter if index == 0 else f"{letter}{index}"

    def add(self, letter: str, index: int = 0) -> None:
        """Note an event."""
        self.extend((self.token(letter, index),))

    def extend(self, tokens: Iterable[str]) -> None:
        """Note several events."""
        self._tokens.extend(tokens)
        if len(self._tokens) >= LONGEST:
            self._tokens = fold(self._tokens)[: LONGEST // 2]

    def batch_after_evaluation(self) -> bool:
        """Whether the newest events are a forward without gradient and another batch."""
        return len(self._tokens) > 1 and self._tokens[-1] == "d" and self._tokens[-2][0] in "em"

    @property
    def has_begun(self) -> bool:
        """Whether the step has had a training forward, a backward or an update."""
        return any(token[0] in "fbs" for token in self._tokens)

    def close(self, tokens: Sequence[str] = ()) -> int:
        """End the step with these events. Returns the number of its pattern (-1 if there are too many)."""
        if self._tokens or len(tokens) >= LONGEST:
            self.extend(tokens)
            tokens, self._tokens = self._tokens, []
        key = tuple(tokens)
        number = self._numbers.get(key)
        if number is None:
            text = "".join(fold(list(key)))
            number = self._known.get(text, -1)
            if number < 0 and len(self._known) < MOST_PATTERNS:
                number = self._known[text] = len(self._known)
                self._announce(number, text)
            if len(self._numbers) < MOST_PATTERNS:
                self._numbers[key] = number
        return number


def fold(tokens: list[str]) -> list[str]:
    """Write repeats once, with a `+`: d e d e d e becomes (de)+."""
    for width in (1, 2, 3, 4):
        tokens = _fold_width(tokens, width)
    return tokens


def _fold_width(tokens: list[str], width: int) -> list[str]:
    folded: list[str] = []
    at = 0
    while at < len(tokens):
        unit = tokens[at : at + width]
        label = unit[0].rstrip("+") + "+" if width == 1 else "(" + "".join(unit) + ")+"
        count = 1
        while tokens[at + count * width : at + (count + 1) * width] == unit:
            count += 1
        if folded and folded[-1] == label and len(unit) == width:
            at += count * width  # the run continues from a part that was folded before
        elif count > 1:
            folded.append(label)
            at += count * width
        else:
            folded.append(tokens[at])
            at += 1
    return folded
