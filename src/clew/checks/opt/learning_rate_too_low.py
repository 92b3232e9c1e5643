"""OPT010 learning-rate-too-low

## What it detects
A loss that hardly falls in fifty or more steps, while the weights get gradients and none of them changes
by more than a few ten-thousandths of its norm per step. `clew check` runs an experiment: from the same
start, over a few dozen steps and with each of three shuffles, the program's rate makes less than a
two-hundredth of the progress of a rate at least a hundred times higher.

## Why is this bad?
A network has to change its weights by about their own norm to learn. At a hundred-thousandth per step
that takes a hundred thousand steps; the run ends long before.

## How to fix
Multiply the learning rate by ten until the loss falls visibly; usual starting points are 1e-3
for Adam and 0.01 to 0.1 for SGD. A healthy step changes the weights by about a thousandth.

## Known problems
A warm-up that has not ended and models loaded from a checkpoint are not checked, nor are several losses
or losses that become negative. Where the gradient itself is tiny, other checks explain why.

## References
- Karpathy, CS231n notes, Neural networks part 3, ratio of updates to weights.
- Smith, Cyclical learning rates for training neural networks, 2017.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median

import numpy as np

from clew.checks.base import Check
from clew.checks.evidence.experiment_outcome import why_not
from clew.checks.evidence.gradient_depth import is_weight
from clew.checks.evidence.learning_rate_evidence import (
    HigherRateExperiment,
    RateComparison,
    optimizer_made,
    where,
)
from clew.checks.evidence.loss_trend import highest_rate, only_loss, pretrained, start_and_end, warming_up
from clew.checks.needs import any_of
from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.checks.trainings import TRAINING
from clew.checks.wording import too_few
from clew.records import signals
from clew.records.facts.learning_experiment_facts import LearningRateTooLowFact
from clew.records.finding import Finding, Severity


@dataclass(frozen=True)
class LearningRateTooLow(Check):
    id = "OPT010"
    name = "learning-rate-too-low"
    rank = 1110
    needs = (
        any_of(signals.LOSS, LearningRateTooLowFact),
        any_of(signals.UPDATE_RATIO, LearningRateTooLowFact),
        any_of(signals.LR, LearningRateTooLowFact),
    )
    scope = TRAINING

    groups = ("rate-faults",)
    caused_by = (
        "half-precision-underflow",
        "scheduler-stuck",
        "clip-ineffective",
        "accumulation-lost",
        "over-regularised",
        "network-faults",
    )

    ratio: float = 3e-4  # change over weight, of the weight that changes most; about 1e-3 is healthy
    fell: float = 0.9  # loss at the end over that at the start; training makes more progress
    rose: float = 1.1  # the same, above which it is diverging
    patience: int = 50  # losses before the check runs
    samples: int = 10  # sampled steps of the weights
    gradient: float = 1e-3  # over the weight; below it, the gradient is too small rather than the rate
    healthy: float = 1e-3  # the change to aim at
    trial: HigherRateExperiment = field(default_factory=HigherRateExperiment)

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        compared = None if pretrained(run) else self.trial.shown(run)
        if compared is not None:
            yield self._tried(run, compared)
        else:
            yield from self._watched(run)

    def _tried(self, run: RunView, compared: RateComparison) -> Finding:
        own, other, start = compared.own, compared.other, compared.found.start
        ended, higher = (start - median(row.gains) for row in (own, other))
        return self.finding(
            Severity.WARNING,
            message=f"learning rate {own.rate:.3g} is too low: on a snapshot, {compared.found.steps} steps "
            f"take the loss from {start:.4g} to {ended:.4g}, but to {higher:.3g} at {other.rate:.2g}",
            fix=f"lr={other.rate / 10:.1g}  # instead of {own.rate:.3g}; a tenth of the fastest rate is safe",
            site=where(run, compared.found.line),
            step=0,
            evidence=compared.evidence(run, self.name),
        )

    def _watched(self, run: RunView) -> Iterator[Finding]:
        loss = only_loss(run)
        site, rate = highest_rate(run)
        if loss is None or len(loss) < self.patience or not rate or pretrained(run) or warming_up(run):
            return
        third = len(loss) // 3  # where nothing moves, only noise differs: more losses average it out
        start, end = start_and_end(loss, third, third)
        if not self.fell * start <= end <= self.rose * start or not self._gradients_arrive(run):
            return
        moving = self._most_moving(run)
        if moving is None or not _typical(moving) < self.ratio:
            return
        size = _typical(moving)
        factor = 10 ** max(round(math.log10(self.healthy / max(size, 1e-12))), 1)
        yield self.finding(
            Severity.WARNING,
            message=f"learning rate {rate:.3g} is too low: a step changes the weights by at most "
            f"{size:.1g} of their norm, and in {loss.span} steps the loss went from {start:.4g} to {end:.4g}",
            fix=f"lr={rate * min(factor, 1e6):.1g}  # instead of {rate:.3g}",
            site=site,
            step=int(loss.steps[0]),
            evidence=[
                loss.evidence("loss"),
                moving.evidence(
                    f"relative change of {run.name(moving.site)} in one step; no other weight changes more"
                ),
                *optimizer_made(run),
            ],
        )

    def _most_moving(self, run: RunView) -> Series | None:
        ratios = [s.finite() for site, s in run.series(signals.UPDATE_RATIO) if is_weight(run, site)]
        known = [s for s in ratios if len(s) >= self.samples]
        return max(known, key=_typical, default=None)

    def _gradients_arrive(self, run: RunView) -> bool:
        for site, gradient in run.series(signals.GRADIENT.norm):
            weight = run.of_parameter(signals.WEIGHT.norm, run.key(site)) if is_weight(run, site) else None
            if weight is not None and gradient.median >= self.gradient * weight.median > 0:
                return True
        return False

    def unjudged(self, run: RunView) -> str | None:
        compared = self.trial.read(run)
        if compared is not None and compared.bottomless:
            return "the loss falls below zero, so its lowest value is unknown"
        if run.outcome(LearningRateTooLowFact) is not None and pretrained(run):
            return "the weights were loaded: a low rate may be intended"
        if run.has(LearningRateTooLowFact):
            return why_not(run, self.name)
        if warming_up(run):
            return "the learning rate is still warming up"
        return too_few(run.longest(signals.LOSS, "train"), self.patience, "steps")


def _typical(series: Series) -> float:
    """The upper quartile: a schedule makes the updates small at its ends."""
    return float(np.quantile(series.values, 0.75))
