"""Reads the memory of the training process and its child processes at intervals: does it grow?

Resident memory counts shared pages in every process; the proportional and the unique share (PSS, USS)
do not, but the kernel walks all pages to compute them. So they are read rarely, and all readings
together take a small share of the time between them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from time import perf_counter

import numpy as np
import numpy.typing as npt
import psutil

from clew.records.step_costs import ProcessMemory

_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096

EVERY = 0.25  # seconds of the run between two readings, at least
CHILDREN_EVERY = 1.0
FULL_EVERY = 5.0
LEAST_PAUSE = 50  # times what a reading took
MOST_READINGS = 400  # readings kept per process; then every other one is dropped
MOST_SHOWN = 100  # of them in the profile
MOST_PROCESSES = 64
WORKER = "pt_data_"  # torch's name for a loader's worker process


@dataclass
class _Process:
    """One process."""

    process: psutil.Process
    role: str
    rss: int = 0
    pss: int | None = None
    uss: int | None = None
    readings: list[tuple[int, int]] = field(default_factory=list)

    def read(self, step: int, full: bool) -> None:
        if full:
            info = self.process.memory_full_info()
            self.pss, self.uss = getattr(info, "pss", None), getattr(info, "uss", None)
        else:
            info = self.process.memory_info()
        self.rss = info.rss
        self.readings.append((step, info.rss))
        if len(self.readings) > MOST_READINGS:
            del self.readings[1::2]

    def found(self) -> ProcessMemory:
        slope = steady_slope(self.readings)
        rate = slope.rate if slope is not None else 0.0
        readings = tuple(self.readings[:: -(-len(self.readings) // MOST_SHOWN) or 1])
        return ProcessMemory(self.process.pid, self.role, self.rss, self.pss, self.uss, rate, readings)


class ProcessWatch:
    """Called as each step begins; reads only when it is time."""

    def __init__(self) -> None:
        self._main = _Process(psutil.Process(), "main")
        self._children: dict[int, _Process] = {}
        self._due = 0.0  # when the resident memory is read next
        self._children_due = 0.0  # when new child processes are looked for next
        self._full_due = 0.0  # when the proportional and the unique share are read next

    def read(self, step: int) -> None:
        """At most a few times a second; a process that has ended keeps its last reading."""
        now = perf_counter()
        if now < self._due:
            return
        full = now >= self._full_due
        if now >= self._children_due:
            self._children_due = now + CHILDREN_EVERY
            self._find_children()
        for seen in (self._main, *self._children.values()):
            try:
                seen.read(step, full)
            except (psutil.Error, OSError):
                continue
        ended = perf_counter()
        pause = LEAST_PAUSE * (ended - now)
        self._due = ended + max(EVERY, pause)
        if full:
            self._full_due = ended + max(FULL_EVERY, pause)

    def _find_children(self) -> None:
        try:
            running = self._main.process.children(recursive=True)
        except (psutil.Error, OSError):
            return
        for process in running[:MOST_PROCESSES]:
            if process.pid not in self._children and len(self._children) < MOST_PROCESSES:
                self._children[process.pid] = _Process(process, "child")
        for seen in self._children.values():
            seen.role = _role(seen)

    def found(self) -> tuple[ProcessMemory, ...]:
        """The main process first; of workers that replaced each other, those that were read last."""
        listed = [seen for seen in self._children.values() if seen.readings]
        last = max((seen.readings[-1][0] for seen in listed), default=0)
        together = [seen for seen in listed if seen.readings[-1][0] == last]
        return tuple(seen.found() for seen in (self._main, *together) if seen.readings)


def _role(seen: _Process) -> str:
    """Torch names its workers as they start: until then, and otherwise, it is a child."""
    if seen.role != "child":
        return seen.role
    try:
        name = seen.process.name()
    except (psutil.Error, OSError):
        return seen.role
    return "loader worker" if name.startswith(WORKER) else "child"


def own_memory() -> float:
    """Bytes of resident memory that is neither shared nor mapped from a file, if the system reports it."""
    try:
        with open("/proc/self/statm", "rb") as file:
            fields = file.read().split()
        return float(int(fields[1]) - int(fields[2])) * _PAGE
    except (OSError, IndexError, ValueError):
        return float(psutil.Process().memory_info().rss)


# -- does it grow? --

# Memory rises at the beginning of every run (allocators and caches fill up), in stairs (arenas), and
# falls back at times. Only memory that keeps rising, in the last part of the readings as in the one before,
# and by more than the scatter of the readings, counts as growth.

WARM_UP = 0.25  # share of the readings, at least, for the warm-up
LEAST_READINGS = 16  # after it
LEAST_RISE = 4 << 20  # bytes over all judged steps
LEAST_SHARE = 0.005  # the same, as a share of the memory
THIRDS = 3
FALLS_BACK = 0.5  # largest fall from a peak to a later reading, as a share of the rise
STEADY = 0.4  # share of the overall rate that each third must reach
MOST_POINTS = 200  # the number of pairs grows quadratically

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Slope:
    """Units per step, and its uncertainty."""

    rate: float
    error: float
    first: int  # step from which on it was fitted
    last: int
    rise: float


def steady_slope(
    readings: Sequence[tuple[int, float]], least: float = LEAST_RISE, share: float = LEAST_SHARE
) -> Slope | None:
    """The growth per step after the warm-up; None unless it is clear."""
    steps, values = _settled(readings)
    if len(steps) < LEAST_READINGS or steps[-1] <= steps[0]:
        return None
    rate, error = fitted(steps, values)
    rise = rate * float(steps[-1] - steps[0])
    if rate <= 4 * error or rise < max(least, share * float(np.median(values))):
        return None
    if not _goes_on(steps, values, rate) or _falls_back(values) > FALLS_BACK * rise:
        return None
    return Slope(rate, error, int(steps[0]), int(steps[-1]), rise)


def _settled(readings: Sequence[tuple[int, float]]) -> tuple[Numbers, Numbers]:
    """The readings after the warm-up, one of each step."""
    table = np.array(sorted(dict(readings).items()), dtype=np.float64)
    table = table[int(len(table) * WARM_UP) :] if len(table) else table.reshape(0, 2)
    if len(table) > MOST_POINTS:
        table = table[np.linspace(0, len(table) - 1, MOST_POINTS).astype(int)]
    return table[:, 0], table[:, 1]


def fitted(steps: Numbers, values: Numbers) -> tuple[float, float]:
    """The Theil–Sen estimator: the median of all pairwise slopes, and its standard error from the scatter."""
    i, j = np.triu_indices(len(steps), 1)
    gaps = steps[j] - steps[i]
    rate = float(np.median((values[j] - values[i]) / np.where(gaps > 0, gaps, 1.0)))
    off = values - rate * steps
    scatter = 1.4826 * float(np.median(np.abs(off - np.median(off))))
    spread = float(np.sqrt(np.sum((steps - steps.mean()) ** 2)))
    return rate, 1.25 * scatter / spread if spread else float("inf")


def _goes_on(steps: Numbers, values: Numbers, rate: float) -> bool:
    """Whether it rose in every third: what fills up once slows down."""
    edges = np.linspace(steps[0], steps[-1], THIRDS + 1)
    for low, high in pairwise(edges):
        inside = (steps >= low) & (steps <= high)
        if inside.sum() < 3:
            return False
        rises = float(values[inside][-1] - values[inside][0])
        if rises < STEADY * rate * float(high - low):
            return False
    return True


def _falls_back(values: Numbers) -> float:
    """The deepest fall: memory that is returned at the end of an epoch is not lost."""
    return float(np.max(np.maximum.accumulate(values) - values))
