"""How much one step changes the weights, and whether steep gradients are to blame for it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from clew.checks.evidence.gradient_depth import first_over_weight, is_weight
from clew.checks.evidence.rates.scale_free_optimizers import scale_free
from clew.checks.run_view import RunView
from clew.checks.series import Series


def weight_updates(run: RunView) -> list[Series]:
    """Update over weight, of each weight."""
    return [series for site, series in run.series("update.ratio") if is_weight(run, site)]


def typical(sizes: Sequence[float]) -> float:
    """The median over the weights; 0 if nothing is known."""
    known = [size for size in sizes if not math.isnan(size)]
    return median(known) if known else 0.0


@dataclass(frozen=True)
class LargeUpdates:
    """Updates that replace a good part of the weights."""

    ratio: float = 0.1  # update over weight, of the median weight; about 1e-3 is healthy
    jump: float = 0.5  # the same, of the largest of the first steps: weights half replaced in one step

    def size(self, weights: Sequence[Series], window: int) -> tuple[float, bool]:
        """The size of an update if it is large, else 0, and whether it was so from the start."""
        early = typical([s.first(window).median for s in weights])
        # From zero, any first step is infinitely large: such weights can't be said to jump.
        jump = typical([s.first(window).max for s in weights if math.isfinite(s.values[0])])
        late = typical([s.finite().last(window).median for s in weights])
        if early > self.ratio or jump > self.jump:
            return early if early > self.ratio else jump, True
        return (late, False) if late > self.ratio else (0.0, False)

    def never(self, weights: Sequence[Series]) -> bool:
        """Whether the steps are known to be small throughout."""
        return bool(weights) and typical([s.finite().max for s in weights]) <= self.ratio


@dataclass(frozen=True)
class SteepStart:
    """Gradients so steep at the first step that they, and not an ordinary rate, make the updates large."""

    gradient: float = 10.0  # gradient over weight at the first step; healthy ones are around 0.1 to 1
    rate: float = 0.1  # learning rate up to which such a gradient, not the rate, is to blame

    def is_in(self, run: RunView) -> bool:
        rates = [s.values[0] for _, s in run.series("lr")]
        steep = first_over_weight(run) >= self.gradient and not scale_free(run)  # Adam's steps don't mind
        return bool(rates) and steep and max(rates) <= self.rate
