"""Samples the Python stack of the training thread with pyinstrument's engine during a window of steps.

The engine calls back about every millisecond. Only code objects and line numbers are kept:
the locals of a frame are never read, as reading copies them into the frame and keeps them alive.

    sampler = Sampler()
    sampler.start()
    sampler.mark(120)          # at every step that begins, the first one too
    samples = sampler.stop()   # what came after the last mark is left out; None: see `sampler.note`
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from time import perf_counter
from types import CodeType, FrameType
from typing import Any

_lock = threading.Lock()

INTERVAL = 0.001  # seconds between two samples
MOST_RECORDS = 200_000  # of one window: minutes of it
MOST_DEPTH = 400  # frames of a stack that are kept, the innermost

_EXPECTED = ("clew-", "QueueFeederThread")  # Clew's, and those of a loader

# Innermost last; a function written in C has its name in place of the code.
Call = tuple[CodeType | str, int]
Stack = tuple[Call, ...]


@dataclass(frozen=True)
class Samples:
    """The sampled stacks, with their step and duration."""

    records: tuple[tuple[Stack, float, int], ...]  # stack, seconds, step
    steps: tuple[int, ...]  # whole ones, in order
    durations: tuple[float, ...]  # of these
    notes: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        """Of all steps."""
        return sum(self.durations)

    @classmethod
    def joined(cls, parts: Iterable[Samples]) -> Samples:
        """Several windows as one."""
        listed = list(parts)
        return cls(
            tuple(record for part in listed for record in part.records),
            tuple(step for part in listed for step in part.steps),
            tuple(seconds for part in listed for seconds in part.durations),
            tuple(dict.fromkeys(note for part in listed for note in part.notes)),
        )


@dataclass
class Sampler:
    """One window. Everything is called on the training thread."""

    interval: float = INTERVAL
    note: str | None = None  # why there are no samples, or not all
    _records: list[tuple[Stack, float, int]] = field(default_factory=list)
    _marks: list[tuple[int, float]] = field(default_factory=list)
    _last: float = 0.0
    _step: int = -1
    _ours: Any = None  # the callback of the interpreter, to recognise it
    _on: bool = False
    _pid: int = 0

    def start(self) -> None:
        """Begin, unless something else profiles or traces this thread."""
        reason = who_profiles()
        if reason is not None:
            self.note = f"Python was not sampled: {reason}"
            return
        try:
            setstatprofile = stat_profiler()
        except ImportError as error:
            self.note = f"Python was not sampled: {error}"
            return
        self._on, self._pid, self._last = True, os.getpid(), perf_counter()
        setstatprofile(self._sample, interval=self.interval, timer_type="walltime")
        self._ours = sys.getprofile()

    def mark(self, step: int) -> None:
        """A step begins; the one before it has ended."""
        self._step = step
        self._marks.append((step, perf_counter()))

    def stop(self) -> Samples | None:
        """End; the step opened by the last mark is left out. None if no step was complete."""
        if not self._on:
            return None
        self._take_off()  # first: a sample after this removes the profiler itself
        self._on = False
        times = [began for _, began in self._marks]
        steps = [step for step, _ in self._marks][:-1]
        if not steps:
            return None
        known = set(steps)
        return Samples(
            tuple(record for record in self._records if record[2] in known),
            tuple(steps),
            tuple(after - before for before, after in pairwise(times)),
            tuple(note for note in (self.note, others()) if note is not None),
        )

    def _take_off(self) -> None:
        """Leave another profiler that has replaced ours in the meantime."""
        if sys.getprofile() is not self._ours:
            self.note = "another profiler was started while Python was sampled"
        else:
            stat_profiler()(None)
        self._ours = None

    def _sample(self, frame: FrameType, event: str, arg: Any) -> None:
        """Called by the engine; an exception here would be raised in the user's program."""
        now = perf_counter()
        try:
            if not self._on or os.getpid() != self._pid:
                sys.setprofile(None)  # a forked child, or stopped from another thread
            elif len(self._records) < MOST_RECORDS:
                self._records.append((stack_of(frame, event, arg), now - self._last, self._step))
        except Exception as error:  # noqa: BLE001 - it must not reach the program
            self.note, self._on = f"Python could not be sampled: {type(error).__name__}: {error}", False
        self._last = perf_counter()  # Clew's own time is not counted


def stack_of(frame: FrameType | None, event: str, arg: Any) -> Stack:
    """The stack that the time before an event was spent in."""
    calls: list[Call] = []
    if event == "call":
        frame = frame.f_back if frame is not None else None  # the function has only just been entered
    elif event in ("c_return", "c_exception"):
        calls.append((builtin_name(arg), 0))
    while frame is not None and len(calls) < MOST_DEPTH:
        calls.append((frame.f_code, frame.f_lineno or 0))
        frame = frame.f_back
    calls.reverse()
    return tuple(calls)


def builtin_name(function: Any) -> str:
    """`TensorBase.item` or `print`."""
    name = str(getattr(function, "__qualname__", None) or getattr(function, "__name__", "?"))
    return name.rpartition(".")[2] if len(name) > 60 else name  # pybind11's classes have names of lines


def who_profiles() -> str | None:
    """What else profiles or traces this thread now, in words; None if nothing does."""
    for watching, what in ((sys.getprofile(), "profiler"), (sys.gettrace(), "tracer")):
        if watching is not None:
            name = getattr(type(watching), "__module__", "") or "?"
            return f"the program uses its own {what} ({_tool(name, watching)})"
    monitoring: Any = getattr(sys, "monitoring", None)
    for number in range(6) if monitoring is not None else ():
        name = monitoring.get_tool(number)
        if name is not None:
            return f"another tool is monitoring the program ({name})"
    return None


def _tool(module: str, watching: Any) -> str:
    """A short name for it: the module of a function, else of its type."""
    own = getattr(watching, "__module__", None)
    if module == "builtins" and isinstance(own, str):
        module = own
    return "cProfile" if "lsprof" in module else module.split(".")[0]


def others() -> str | None:
    """The program's threads that were not sampled."""
    here = threading.get_ident()
    listed = [t.name for t in threading.enumerate() if t.ident != here]
    names = [name for name in dict.fromkeys(listed) if not name.startswith(_EXPECTED)]
    if not names:
        return None
    shown = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
    return f"only the training thread was sampled, not {shown}"


def stat_profiler() -> Any:
    """The function that makes the interpreter call back at intervals; raises ImportError.

    Importing pyinstrument adds a warnings filter, and then every warning that was shown once
    would be shown again: the program's warnings must not change.
    """
    name = "pyinstrument.low_level.stat_profile"
    if name not in sys.modules:
        with _lock:
            kept, warnings.filterwarnings = warnings.filterwarnings, _nothing
            try:
                importlib.import_module(name)
            finally:
                warnings.filterwarnings = kept
    return sys.modules[name].setstatprofile


def _nothing(*_: Any, **__: Any) -> None:
    """Replaces `warnings.filterwarnings`."""
