"""Two ways of running the same steps, compared in many short pairs within one process.

Machines are noisy, so the two halves of a pair follow each other closely, in ABBA order with a random
start, CPU time is measured as well as wall time, and the ratio is the median over pairs, with a bootstrap
interval. Compare it with the ratio of raw against raw.

Three ratios: of the median step of a half in wall time; the same in CPU time, with what Python's other
threads take for a step; and of the halves as a whole in CPU time, which includes sampled steps and
the writing of records, which a median does not see. Other threads keep working after a half and on their
own schedule, so their time is measured over one long stretch.

The C library returns large blocks to the system and gets them back page by page, at random: a tenth of a
CNN's step, sometimes more and sometimes less. It is told to keep them, for both halves.
"""

from __future__ import annotations

import contextlib
import ctypes
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

# A half must hold its share of sampled steps, which come every ten steps or more rarely, and of notes
# being written, every 0.2 s; and be short against the machine's changes of speed.
SHORTEST = 6
SECONDS = 0.3
STRETCH = 20.0  # seconds over which the work of other threads is counted: some of it comes every ten
SWITCHING = 2  # steps not timed after attaching or detaching
BOOTSTRAPS = 2_000


@dataclass(frozen=True)
class Half:
    """What a step took, in seconds."""

    cpu: float
    wall: float
    whole: float  # the mean, in CPU time


@dataclass(frozen=True)
class Ratio:
    """Median of pair ratios, and the middle 95% of its bootstrap distribution."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low:.3f}–{self.high:.3f})"


@dataclass(frozen=True)
class Comparison:
    """The time of a step with the tool, divided by one without."""

    cpu: Ratio
    wall: Ratio
    whole: Ratio

    def __str__(self) -> str:
        return f"CPU {self.cpu}, wall {self.wall}, whole {self.whole}"


def compare(
    step: Callable[[], None],
    on: Callable[[], None],
    off: Callable[[], None],
    *,
    pairs: int,
    steps: int,
    stretch: float = STRETCH,
) -> Comparison:
    """A step after `on()`, divided by one after `off()`."""
    cpu, wall, whole = [], [], []
    keep_memory()
    on()
    beside = background(step, stretch)
    with_first = random.random() < 0.5
    for _ in range(pairs):
        halves = {}
        for active in (with_first, not with_first):
            (on if active else off)()
            for _ in range(SWITCHING):  # switching is the benchmark's doing, not a run's
                step()
            halves[active] = _time(step, steps)
        cpu.append((halves[True].cpu + beside) / halves[False].cpu)
        wall.append(halves[True].wall / halves[False].wall)
        whole.append((halves[True].whole + beside) / halves[False].whole)
        with_first = not with_first
    off()
    return Comparison(summarise(cpu), summarise(wall), summarise(whole))


def keep_memory() -> None:
    """Tell glibc to give no memory back: neither the top of its heap nor blocks of a mapping of their own."""
    trim_threshold, mmap_threshold, most = -1, -3, 1 << 30  # of mallopt(3)
    with contextlib.suppress(OSError, AttributeError):  # another C library
        library = ctypes.CDLL(None)
        library.mallopt(trim_threshold, most)
        library.mallopt(mmap_threshold, most)


def background(step: Callable[[], None], seconds: float) -> float:
    """CPU seconds of Python's other threads per step, while steps run for this long."""
    others = _Others()
    begin, before, steps = time.perf_counter(), others.seconds(), 0
    while time.perf_counter() - begin < seconds:
        step()
        steps += 1
    return (others.seconds() - before) / max(steps, 1)


class _Others:
    """CPU seconds that Python's other threads have used; torch's own threads do not count."""

    def __init__(self) -> None:
        self._find()

    def _find(self) -> None:
        others = [t.ident for t in threading.enumerate() if t is not threading.current_thread() and t.ident]
        self._clocks = [time.pthread_getcpuclockid(ident) for ident in others]

    def seconds(self) -> float:
        try:
            return sum(map(time.clock_gettime, self._clocks))
        except OSError:  # one has ended: this half will be an outlier
            self._find()
            return self.seconds()


def _time(step: Callable[[], None], steps: int) -> Half:
    """CPU time is that of the process without Python's other threads, whose share is added as a mean."""
    others = _Others()
    cpu, wall = [time.process_time() - others.seconds()], [time.perf_counter()]
    for _ in range(steps):
        step()
        cpu.append(time.process_time() - others.seconds())
        wall.append(time.perf_counter())
    whole = (cpu[-1] - cpu[0]) / steps
    return Half(float(np.median(np.diff(cpu))), float(np.median(np.diff(wall))), whole)


def summarise(ratios: list[float]) -> Ratio:
    """The median, with its bootstrap interval."""
    values = np.asarray(ratios)
    drawn = np.random.default_rng(0).choice(values, (BOOTSTRAPS, len(values)))
    low, high = np.percentile(np.median(drawn, axis=1), [2.5, 97.5])
    return Ratio(float(np.median(values)), float(low), float(high))


def how_many(seconds: float, asked: int | None) -> int:
    """Pairs: short steps vary more, and cost less to repeat."""
    return asked or (60 if seconds < 0.01 else 40)


def steps_per_half(step: Callable[[], None], seconds: float = SECONDS) -> tuple[int, float]:
    """How many steps a half has, and the seconds that a step takes."""
    for _ in range(3):
        step()
    begin = time.perf_counter()
    for _ in range(5):
        step()
    one = (time.perf_counter() - begin) / 5
    return max(SHORTEST, round(seconds / one)), one
