"""OPT013 update-ratio-off

## What it detects
A weight whose changes, relative to its norm, are a hundred times smaller or larger than those of the
other weights, although its gradient is similar: it has its own learning rate, which is wrong. Also, as
advice, a whole model whose changes are far from a thousandth per step.

## Why is this bad?
At a hundredth of the others' rate a layer keeps its initial weights while the rest of the network
trains; at a hundred times, it jumps around and the rest has to follow.

## How to fix
Look at the learning rate of its parameter group. A factor of ten between groups is usual (a new head on a
pretrained backbone); a factor of a thousand is a mistake.

## Known problems
Models loaded from a checkpoint may have slow layers on purpose and are not checked. A layer whose
gradient itself is small is left to the gradient checks.

## References
- Karpathy, CS231n notes, Neural networks part 3, ratio of updates to weights.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median

from clew.checks.base import Check
from clew.checks.evidence.gradient_depth import is_weight
from clew.checks.evidence.loss_trend import highest_rate, pretrained, warming_up
from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.checks.trainings import TRAINING
from clew.checks.wording import too_few
from clew.records import signals
from clew.records.finding import Finding, Severity


@dataclass(frozen=True)
class UpdatePace:
    """How fast one weight changes, and how large its gradient is, both relative to its norm."""

    series: Series
    ratio: float
    gradient: float


@dataclass(frozen=True)
class FullRate:
    """A learning rate that is not at the end of a schedule that took it down."""

    left: float = 0.5  # learning rate at the end over its highest

    def is_used(self, run: RunView) -> bool:
        rates = [s.finite() for _, s in run.series(signals.LR)]
        return all(len(r) and float(r.values[-1]) >= self.left * r.max for r in rates)


@dataclass(frozen=True)
class UpdateRatioOff(Check):
    id = "OPT013"
    name = "update-ratio-off"
    rank = 1210
    needs = (
        signals.UPDATE_RATIO,
        signals.GRADIENT.norm,
        signals.WEIGHT.norm,
    )
    scope = TRAINING

    caused_by = (
        "half-precision-underflow",
        "clip-ineffective",
        "learning-rate-too-low",
        "over-regularised",
        "poor-initialisation",
        "step-size-faults",
        "loop-faults",
    )

    apart: float = 100.0  # factor between a weight's pace and that of the others
    slow: float = 1e-5  # pace below which a layer does not learn; 1e-3 is healthy
    fast: float = 0.1  # pace above which it jumps around
    gradient: float = 10.0  # factor by which its gradient may differ from the others'
    window: int = 20  # the last sampled steps
    low: float = 1e-5  # pace of the whole model, below which it gets advice
    high: float = 0.1  # the same, above which it gets advice
    rate: FullRate = field(default_factory=FullRate)

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        paces = self._paces(run)
        if len(paces) < 2 or warming_up(run):
            return
        ratio, gradient = median(p.ratio for p in paces), median(p.gradient for p in paces)
        odd = [] if pretrained(run) else [p for p in paces if self._odd(p, ratio, gradient)]
        for pace in sorted(odd, key=lambda p: run.depth(p.series.site)):
            yield self._odd_one(run, pace, ratio)
        if not odd and not self.low <= ratio <= self.high and self.rate.is_used(run):
            yield self._all(run, paces, ratio)

    def _paces(self, run: RunView) -> list[UpdatePace]:
        found = []
        for site, series in run.series(signals.UPDATE_RATIO):
            recent = series.finite().last(self.window)
            g = run.of_parameter(signals.GRADIENT.norm, run.key(site))
            w = run.of_parameter(signals.WEIGHT.norm, run.key(site))
            if not is_weight(run, site) or len(recent) < self.window or g is None or w is None:
                continue
            size = w.last(self.window).median
            if size > 0 and recent.median > 0:
                found.append(UpdatePace(series, recent.median, g.last(self.window).median / size))
        return found

    def _odd(self, pace: UpdatePace, ratio: float, gradient: float) -> bool:
        if not gradient > 0 or not 1 / self.gradient <= pace.gradient / gradient <= self.gradient:
            return False
        too_slow = pace.ratio < self.slow and pace.ratio * self.apart < ratio
        return too_slow or (pace.ratio > self.fast and pace.ratio > self.apart * ratio)

    def _odd_one(self, run: RunView, pace: UpdatePace, ratio: float) -> Finding:
        name = run.name(pace.series.site)
        factor = ratio / pace.ratio
        return self.finding(
            Severity.WARNING,
            message=f"{name} changes by {pace.ratio:.1g} of its norm per step, while the other weights "
            f"change by {ratio:.1g}: its learning rate is {'too low' if factor > 1 else 'too high'}",
            fix=f"{'multiply' if factor > 1 else 'divide'} the learning rate of its parameter group by "
            f"{10 ** round(abs(math.log10(factor))):,}",
            site=pace.series.site,
            step=int(pace.series.steps[0]),
            evidence=pace.series.evidence(f"relative change of {name} in one step"),
        )

    def _all(self, run: RunView, paces: list[UpdatePace], ratio: float) -> Finding:
        site, rate = highest_rate(run)
        middle = min(paces, key=lambda p: abs(p.ratio - ratio)).series
        low = ratio < self.low
        return self.finding(
            Severity.ADVICE,
            message=f"a step changes the weights by {ratio:.1g} of their norm, where 0.001 is usual: "
            f"the learning rate{f' {rate:.3g}' if rate else ''} may be too {'low' if low else 'high'}",
            fix=f"try a {'higher' if low else 'lower'} learning rate",
            site=site,
            step=int(middle.steps[0]),
            evidence=middle.evidence(f"relative change of {run.name(middle.site)} in one step"),
        )

    def unjudged(self, run: RunView) -> str | None:
        return too_few(run.longest(signals.UPDATE_RATIO), self.window, "sampled steps")
