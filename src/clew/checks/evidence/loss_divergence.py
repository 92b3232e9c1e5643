"""How a loss goes away: far from its start, in a burst, or after a leap of the rate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.records import signals
from clew.records.site import Site


@dataclass(frozen=True)
class LossDeparture:
    """A loss compared with its start."""

    start: int = 5  # losses whose median is the start; more would include the first progress
    away: float = 3.0  # diverged: loss in units of its start; the noise of a healthy one hardly triples it
    stuck: float = 0.9  # no progress: loss at the end over that at the start; noise makes it fall a little

    def begin(self, loss: Series) -> float:
        """The loss at the start; the first value alone if later ones have already diverged."""
        first = loss.first(self.start).finite()
        return min(float(first.values[0]), first.median) if len(first) else float("nan")

    def diverged(self, loss: Series, window: int) -> bool:
        """Whether it is far above its start in the end, or was before it became NaN or infinite."""
        level = self._level(loss, window)
        if loss.first_nonfinite() is not None:
            grown = loss.before(loss.first_nonfinite() or 0).last(window).max
            return grown > level
        return len(loss) >= 2 * window and loss.last(window).median > level

    def fell(self, loss: Series) -> bool:
        """Whether training made progress before the loss went away: then something else happened."""
        return loss.finite().min < self.stuck * self.begin(loss)

    def stands(self, loss: Series, window: int) -> bool:
        """Whether it ends where it began."""
        return loss.min >= 0 and loss.last(window).median >= self.stuck * self.begin(loss)

    def _level(self, loss: Series, window: int) -> float:
        """The loss has diverged above this. For a loss that changes sign, the unit is its first spread."""
        start, first = self.begin(loss), loss.first(window)
        unit = max(abs(start), first.max - first.min) if loss.min < 0 < loss.max else abs(start)
        return start + (self.away - 1) * unit


@dataclass(frozen=True)
class LossBurst:
    """A loss that the first steps blow up, and that hardly recovers."""

    times: float = 10.0  # a jump of the loss, in units of its start, that no noise makes
    recovered: float = 0.5  # share of the first loss; a loss that comes down to it has recovered
    floor: float = 0.1  # share of the first loss; below it, the units that are left are enough to learn
    killed: float = 0.9  # share of a layer's units that are silent at the end
    alive: float = 0.5  # the same at the first step: a layer that began so was not killed by the steps

    def wrecks(self, run: RunView, loss: Series, begin: float, window: int) -> bool:
        """Whether it wrecked the network."""
        if loss.min < 0 or not loss.first(window).max > self.times * begin:
            return False
        end = loss.last(window).median
        return end > self.recovered * begin or (end > self.floor * begin and self._kills(run, window))

    def peak(self, loss: Series, begin: float, end: float, window: int) -> float | None:
        """The height of the burst; None if there is none."""
        peak = loss.first(window).max
        return peak if begin > 0 and peak > self.times * max(begin, end) else None

    def _kills(self, run: RunView, window: int) -> bool:
        """Whether a layer that was alive at first has hardly any active units left."""
        return any(
            s.values[0] < self.alive and s.last(window).median >= self.killed
            for _, s in run.series(signals.ACTIVATION_DEAD_FRACTION)
        )


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
    """What counts as a leap of the rate, and as a loss that does not recover from it."""

    times: float = 10.0  # rate over the highest before it; schedules rise in smaller steps
    settled: int = 5  # steps before such a leap; a warm-up multiplies the rate in its first steps
    burst: float = 10.0  # loss after it, in units of the loss before, that no noise makes
    stuck: float = 0.9  # loss at the end over the loss before it

    def find(self, run: RunView, loss: Series, window: int, patience: int) -> Leap | None:
        """The first leap after which the loss rose and never recovered."""
        for site, rate in run.series(signals.LR):
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
        """The position of the first leap in the series."""
        before = np.maximum.accumulate(rate.values)[:-1]
        leaps = np.flatnonzero((rate.values[1:] > self.times * before) & (before > 0)) + 1
        yield from (int(at) for at in leaps[leaps >= self.settled][:1])
