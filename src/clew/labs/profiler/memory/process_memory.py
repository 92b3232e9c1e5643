"""Reads the memory of the training process and its child processes at intervals.

Resident memory counts shared pages in every process; the proportional and the unique share (PSS, USS)
do not, but the kernel walks all pages to tell them. So they are asked for rarely, and all readings
together take a small share of the time between them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from time import perf_counter

import psutil

from clew.labs.profiler.memory.growth_slope import steady_slope
from clew.records.step_costs import ProcessMemory

_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096

EVERY = 0.25  # seconds of the run between two readings, at least
CHILDREN_EVERY = 1.0
FULL_EVERY = 5.0
LEAST_PAUSE = 50  # times what a reading took
MOST_READINGS = 400  # kept of a process; then every other one is dropped
MOST_SHOWN = 100  # of them in the profile
MOST_PROCESSES = 64
WORKER = "pt_data_"  # what torch calls the process of a loader's worker


@dataclass
class _Seen:
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
    """Told of steps as they begin; reads only when it is time."""

    def __init__(self) -> None:
        self._main = _Seen(psutil.Process(), "main")
        self._children: dict[int, _Seen] = {}
        self._due = [0.0, 0.0, 0.0]  # resident memory, children, all that can be known

    def look(self, step: int) -> None:
        """At most a few times a second; a process that is gone keeps what was last read of it."""
        now = perf_counter()
        if now < self._due[0]:
            return
        full = self._is_due(2, now, FULL_EVERY)
        if self._is_due(1, now, CHILDREN_EVERY):
            self._find_children()
        for seen in (self._main, *self._children.values()):
            try:
                seen.read(step, full)
            except (psutil.Error, OSError):
                continue
        ended = perf_counter()
        pause = LEAST_PAUSE * (ended - now)
        self._due[0] = ended + max(EVERY, pause)
        if full:
            self._due[2] = ended + max(FULL_EVERY, pause)

    def _is_due(self, which: int, now: float, every: float) -> bool:
        due = now >= self._due[which]
        if due:
            self._due[which] = now + every
        return due

    def _find_children(self) -> None:
        try:
            running = self._main.process.children(recursive=True)
        except (psutil.Error, OSError):
            return
        for process in running[:MOST_PROCESSES]:
            if process.pid not in self._children and len(self._children) < MOST_PROCESSES:
                self._children[process.pid] = _Seen(process, "child")
        for seen in self._children.values():
            seen.role = _role(seen)

    def found(self) -> tuple[ProcessMemory, ...]:
        """The main process first; of workers that came one after the other, those that were read last."""
        listed = [seen for seen in self._children.values() if seen.readings]
        last = max((seen.readings[-1][0] for seen in listed), default=0)
        together = [seen for seen in listed if seen.readings[-1][0] == last]
        return tuple(seen.found() for seen in (self._main, *together) if seen.readings)


def _role(seen: _Seen) -> str:
    """Torch names its workers as they begin: until then, and for others, it is a child."""
    if seen.role != "child":
        return seen.role
    try:
        name = seen.process.name()
    except (psutil.Error, OSError):
        return seen.role
    return "loader worker" if name.startswith(WORKER) else "child"


def own_memory() -> float:
    """Bytes of resident memory that is neither shared nor mapped from a file, where the system tells."""
    try:
        with open("/proc/self/statm", "rb") as file:
            fields = file.read().split()
        return float(int(fields[1]) - int(fields[2])) * _PAGE
    except (OSError, IndexError, ValueError):
        import psutil

        return float(psutil.Process().memory_info().rss)
