"""A learning rate far above all before it, from which the loss never came back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.records.site import Site


@dataclass(frozen=True)
class Leap:
    """Where the rate leaps, and the loss before, at and after it."""

    site: Site
    step: int
    low: float  # rate before
    high: float  # rate at the step
    rates: Series
    usual: float  # loss before
    worst: float
    end: float


@dataclass(frozen=True)
class RateLeap:
    """What counts as a leap, and as a loss that it took away."""

    times: float = 10.0  # rate over the highest before it; schedules rise in smaller steps
    settled: int = 5  # steps before such a leap; the first ones of a warm-up multiply the rate
    burst: float = 10.0  # loss after it, in units of the loss before, that no noise makes
    stuck: float = 0.9  # share of the loss before it that the loss still has in the end

    def find(self, run: RunView, loss: Series, window: int, patience: int) -> Leap | None:
        """The first leap that took the loss away to where it never came back from."""
        for site, rate in run.series("lr"):
            for at in self._leaps(rate):
                step = int(rate.steps[at])
                usual, after = loss.before(step + 1).last(window), loss.since(step + 1)
                blown = after.first(window).max > self.burst * usual.median > 0
                late = after.last(window).median >= self.stuck * usual.median
                if blown and late and len(after) >= patience and loss.min >= 0:
                    low, high = float(rate.values[at - 1]), float(rate.values[at])
                    worst, end = loss.since(step).first(window).max, loss.last(window).median
                    return Leap(site, step, low, high, rate, usual.median, worst, end)
        return None

    def _leaps(self, rate: Series) -> Iterator[int]:
        """The first of them, by its place in the series."""
        before = np.maximum.accumulate(rate.values)[:-1]
        leaps = np.flatnonzero((rate.values[1:] > self.times * before) & (before > 0)) + 1
        yield from (int(at) for at in leaps[leaps >= self.settled][:1])
