"""Two ways of running the same steps, compared in many short pairs within one process.

Machines are noisy, so the two halves of a pair follow each other closely, forth and back (ABBA)
from a random start, a half is as long as its median step, CPU time is taken beside wall time, and
the ratio is the median over pairs, with a bootstrap interval. Compare it with that of raw against
raw. Sampled steps are rare in the default mode and hardly move a median: what they add is bounded
by the budget, and printed as the share of time that Clew booked as its own.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

# A sampled step comes every ten steps or more rarely: in halves of five steps, half of them at
# most hold one, so the median of pairs sees about the mean. Longer halves drift apart.
SHORTEST = 5
# A half must be long against the clock's resolution, and short against the machine's changes of speed.
SECONDS = 0.05
# Work that was handed to a background thread is waited for, and counted where it belongs.
SETTLE = 0.25
SWITCHING = 2  # steps not timed after attaching or detaching
BOOTSTRAPS = 2_000


@dataclass(frozen=True)
class Half:
    """What a step took, in seconds."""

    cpu: float
    wall: float


@dataclass(frozen=True)
class Ratio:
    """Median of pair ratios, and the middle 95 % of its bootstrap distribution."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low:.3f}–{self.high:.3f})"


def compare(
    step: Callable[[], None],
    on: Callable[[], None],
    off: Callable[[], None],
    *,
    pairs: int,
    steps: int,
    settle: float = SETTLE,
) -> tuple[Ratio, Ratio]:
    """CPU and wall time of a step after `on()`, divided by those after `off()`."""
    cpu, wall = [], []
    with_first = random.random() < 0.5
    for _ in range(pairs):
        halves = {}
        for active in (with_first, not with_first):
            (on if active else off)()
            for _ in range(SWITCHING):  # switching is the benchmark's doing, not a run's
                step()
            halves[active] = _time(step, steps, settle)
        cpu.append(halves[True].cpu / halves[False].cpu)
        wall.append(halves[True].wall / halves[False].wall)
        with_first = not with_first
    off()
    return summarise(cpu), summarise(wall)


def _time(step: Callable[[], None], steps: int, settle: float) -> Half:
    """The median step, and a step's share of what background threads do afterwards."""
    cpu, wall = [time.process_time()], [time.perf_counter()]
    for _ in range(steps):
        step()
        cpu.append(time.process_time())
        wall.append(time.perf_counter())
    time.sleep(settle)
    afterwards = (time.process_time() - cpu[-1]) / steps
    return Half(float(np.median(np.diff(cpu))) + afterwards, float(np.median(np.diff(wall))))


def summarise(ratios: list[float]) -> Ratio:
    """The median, and how far it could have fallen otherwise."""
    values = np.asarray(ratios)
    drawn = np.random.default_rng(0).choice(values, (BOOTSTRAPS, len(values)))
    low, high = np.percentile(np.median(drawn, axis=1), [2.5, 97.5])
    return Ratio(float(np.median(values)), float(low), float(high))


def how_many(seconds: float, asked: int | None) -> int:
    """Pairs: short steps vary more, and cost less to repeat."""
    return asked or (60 if seconds < 0.01 else 15)


def steps_per_half(step: Callable[[], None], seconds: float = SECONDS) -> tuple[int, float]:
    """How many steps make a half, and the seconds that one takes."""
    for _ in range(3):
        step()
    begin = time.perf_counter()
    for _ in range(5):
        step()
    one = (time.perf_counter() - begin) / 5
    return max(SHORTEST, round(seconds / one)), one
