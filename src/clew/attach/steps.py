"""The clock of a run: which step it is, where its time went, and the row written at its end."""

from __future__ import annotations

import os
from collections.abc import Callable
from time import perf_counter
from typing import Any

import torch
from torch import Tensor

from clew.attach.events import Pattern
from clew.attach.sink import Sink
from clew.records import Site

STEP_SIGNALS = (
    "wall",
    "step.time",
    "time.data",
    "time.forward",
    "time.backward",
    "time.optimizer",
    "time.rest",
    "time.clew",
    "batch.size",
    "memory.rss",
    "events.pattern",
)
MEMORY_EVERY = 0.25  # seconds between two readings of the process memory

Write = Callable[[int, float], None]


class StepClock:
    """Accumulates one step's times and counts; `close` writes them and begins the next."""

    def __init__(self, sink: Sink, pattern: Pattern) -> None:
        self._sink = sink
        self._pattern = pattern
        self._table = sink.table(STEP_SIGNALS, [sink.site(Site())])
        self._began = self._ended = perf_counter()
        self._memory = Memory()
        self._deferred: list[tuple[Tensor, int, Write]] = []
        self._mode_tables: dict[str, int] = {}
        self.step = 0
        self.data = self.forward = self.backward = self.optimizer = self.own = 0.0
        self.batch = 0
        self.pending_batch = 0  # of a forward whose backward has not come yet
        self.modes: dict[str, float] = {}

    def defer(self, value: Any, write: Write) -> None:
        """Write a number: at once on the CPU, else a step later and with others in one transfer.

        Reading a number from an accelerator makes the host wait for it; one step later it is there.
        """
        if not isinstance(value, Tensor):
            write(self.step, float(value))
        elif value.device.type == "cpu":
            write(self.step, value.item())
        else:
            self._deferred.append((value.reshape(()).float(), self.step, write))

    def resolve(self) -> None:
        """Fetch what was deferred: one transfer for each device."""
        waiting, self._deferred = self._deferred, []
        for device in {value.device for value, _, _ in waiting}:
            here = [entry for entry in waiting if entry[0].device == device]
            for number, (_, step, write) in zip(
                torch.stack([e[0] for e in here]).tolist(), here, strict=True
            ):
                write(step, number)

    def others(self) -> float:
        """Seconds of this step booked so far, but for the optimizer's."""
        return self.data + self.forward + self.backward + self.own

    def close(self) -> tuple[float, float]:
        """End the step; Clew's own seconds in it, and all of it."""
        if self._deferred and self._deferred[0][1] < self.step:
            self.resolve()
        now = perf_counter()
        total = now - self._ended
        known = self.data + self.forward + self.backward + self.optimizer
        row = (
            now - self._began,
            total,
            self.data,
            self.forward,
            self.backward,
            self.optimizer,
            max(total - known - self.own, 0.0),
            self.own,
            float(self.batch),
            self._memory.read(now),
            float(self._pattern.close()),
        )
        self._sink.row(self._table, self.step, row)
        self._write_modes()
        own = self.own
        self.data = self.forward = self.backward = self.optimizer = self.own = 0.0
        self.batch = self.pending_batch = 0
        self._ended = now
        self.step += 1
        return own, total

    def _write_modes(self) -> None:
        for root, training in self.modes.items():
            table = self._mode_tables.get(root)
            if table is None:
                site = self._sink.site(Site("", phase="train", root=root))
                table = self._mode_tables[root] = self._sink.table(["mode.training"], [site])
            self._sink.row(table, self.step, (training,))
        self.modes = {}


class Memory:
    """The process's resident memory, read now and then."""

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
    """Where there is no /proc, the peak is the best that the standard library knows."""
    try:
        import resource
        import sys
    except ImportError:
        return float("nan")
    unit = 1 if sys.platform == "darwin" else 1024
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit)
