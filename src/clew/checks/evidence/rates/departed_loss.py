"""Whether a loss has left, stands where it began, or was blown up by the first steps."""

from __future__ import annotations

from dataclasses import dataclass

from clew.checks.run_view import RunView
from clew.checks.series import Series


@dataclass(frozen=True)
class LossDeparture:
    """A loss against where it began."""

    start: int = 5  # losses whose median is the start; more would take in the first progress
    away: float = 3.0  # diverged: loss in units of its start; the noise of a healthy one hardly triples it
    stuck: float = 0.9  # no progress: share of its start that the loss still has; noise makes some

    def begin(self, loss: Series) -> float:
        """The loss at the start: a divergence may show in the second value already."""
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
        """Whether it is in the end where it began."""
        return loss.min >= 0 and loss.last(window).median >= self.stuck * self.begin(loss)

    def _level(self, loss: Series, window: int) -> float:
        """Above this the loss has left; one that changes sign has its first spread as unit."""
        start, first = self.begin(loss), loss.first(window)
        unit = max(abs(start), first.max - first.min) if loss.min < 0 < loss.max else abs(start)
        return start + (self.away - 1) * unit


@dataclass(frozen=True)
class LossBurst:
    """A loss that the first steps blow up, and that is not much the wiser since."""

    times: float = 10.0  # a jump of the loss, in units of its start, that no noise makes
    recovered: float = 0.5  # share of its start that the loss must come down to, to forgive a burst
    floor: float = 0.1  # share of its start below which a loss has learned with what is left
    killed: float = 0.9  # share of a layer's units that are silent in the end
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
        """Whether a layer that was alive at first has hardly a unit left."""
        return any(
            s.values[0] < self.alive and s.last(window).median >= self.killed
            for _, s in run.series("activation.dead_fraction")
        )
