"""OPT004 learning-rate-too-high

## What it detects
A loss that diverges (rises far above its start, or grows until it is non-finite), or that makes no
progress at all, while a single step changes the weights by more than a tenth of their norm. Also a loss
that the first steps blow up and that then stays above half of its start, or that leaves a layer with
nearly all units dead; and a learning rate that jumps to many times all earlier values, with a loss that
never recovers. `clew check` runs an experiment: from the same start, over a few dozen steps and with
each of three shuffles, the program's rate makes no progress while a tenth or a hundredth of it does.

## Why is this bad?
Such large steps jump over every minimum. Above twice the inverse of the curvature, each step ends
farther from the minimum than it started, and the loss grows without bound; just below that, it
oscillates.

## How to fix
Divide the learning rate by ten until the loss falls; usual starting points are 1e-3 for Adam and
0.01 to 0.1 for SGD. A healthy step changes the weights by about a thousandth of their norm. Warm
up over the first few hundred steps if training needs the high rate later.

## Known problems
Large updates alone are fine, and common in small models and in the first steps: they are reported only
if the loss gets worse or does not improve. Where gradients were out of scale from the first step at an
ordinary learning rate, exploding-gradient is reported instead. Losses that change sign, or several
losses (reinforcement learning, GANs), are only checked for divergence.

## References
- LeCun et al., Efficient BackProp, 1998, section 4.7.
- Smith, Cyclical learning rates for training neural networks, 2017.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median

from clew.checks.base import Check
from clew.checks.evidence.experiment_outcome import why_not
from clew.checks.evidence.learning_rate_evidence import (
    LargeUpdates,
    LowerRateExperiment,
    RateComparison,
    SteepStart,
    optimizer_made,
    typical,
    weight_updates,
    where,
)
from clew.checks.evidence.loss_divergence import Leap, LossBurst, LossDeparture, RateLeap
from clew.checks.evidence.loss_trend import highest_rate, train_losses
from clew.checks.needs import any_of
from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.checks.trainings import TRAINING
from clew.checks.wording import too_few
from clew.records import signals
from clew.records.facts.learning_experiment_facts import LearningRateTooHighFact
from clew.records.finding import Finding, Severity


@dataclass(frozen=True)
class LearningRateTooHigh(Check):
    id = "OPT004"
    name = "learning-rate-too-high"
    needs = (
        any_of(signals.LOSS, LearningRateTooHighFact),
        any_of(signals.UPDATE_RATIO, LearningRateTooHighFact),
    )
    scope = TRAINING

    groups = ("rate-faults", "step-size-faults")
    caused_by = (
        "missing-zero-grad",
        "accumulation-unscaled",
        "over-regularised",
        "poor-initialisation",
        "scale-faults",
        "network-faults",
    )

    window: int = 20  # losses, or sampled steps, at either end: enough for a steady median
    patience: int = 50  # losses before one without progress is reported; a warm-up may need some
    updates: LargeUpdates = field(default_factory=LargeUpdates)
    loss: LossDeparture = field(default_factory=LossDeparture)
    burst: LossBurst = field(default_factory=LossBurst)
    leap: RateLeap = field(default_factory=RateLeap)
    steep: SteepStart = field(default_factory=SteepStart)
    trial: LowerRateExperiment = field(default_factory=LowerRateExperiment)

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        compared = self.trial.shown(run)
        if compared is not None:
            yield self._tried(run, compared)
            return
        losses = train_losses(run)
        leap = self.leap.find(run, losses[0], self.window, self.patience) if len(losses) == 1 else None
        if leap is not None:
            yield self._leapt(run, leap, losses[0])
        else:
            yield from self._watched(run, losses)

    def _watched(self, run: RunView, losses: Sequence[Series]) -> Iterator[Finding]:
        """Large updates, with a loss that diverges or makes no progress."""
        weights = weight_updates(run)
        size, from_the_start = self.updates.size(weights, self.window)
        if not size or self.steep.is_in(run):
            return
        gone = [x for x in losses if self.loss.diverged(x, self.window)]
        gone = [x for x in gone if from_the_start or not self.loss.fell(x)]
        if gone:
            yield self._finding(run, Severity.ERROR, gone[0], weights, size)
        elif len(losses) == 1 and self._got_nowhere(run, losses[0], from_the_start):
            yield self._finding(run, Severity.WARNING, losses[0], weights, size)

    def _got_nowhere(self, run: RunView, loss: Series, from_the_start: bool) -> bool:
        if len(loss) < self.patience:
            return False
        wrecked = from_the_start and self.burst.wrecks(run, loss, self.loss.begin(loss), self.window)
        return wrecked or self.loss.stands(loss, self.window)

    def clears(self, run: RunView) -> bool:
        """Only small steps rule it out; large ones with a falling loss prove nothing."""
        return self.updates.never(weight_updates(run))

    def _tried(self, run: RunView, compared: RateComparison) -> Finding:
        own, other, start = compared.own, compared.other, compared.found.start
        ended, lower = (start - median(row.gains) for row in (own, other))
        return self.finding(
            Severity.WARNING,
            message=f"learning rate {own.rate:.3g} is too high: on a snapshot, {compared.found.steps} steps "
            f"take the loss from {start:.3g} to {ended:.3g}, but to {lower:.3g} at {other.rate:.2g}",
            fix=f"lr={other.rate:.1g}  # instead of {own.rate:.3g}",
            site=where(run, compared.found.line),
            step=0,
            evidence=compared.evidence(run, self.name),
        )

    def _leapt(self, run: RunView, leap: Leap, loss: Series) -> Finding:
        around = leap.rates.since(leap.step - self.window).first(2 * self.window)
        return self.finding(
            Severity.WARNING,
            message=f"the learning rate jumps from {leap.low:.3g} to {leap.high:.3g} at step {leap.step}: "
            f"the loss goes from {leap.usual:.3g} to {leap.worst:.3g} and ends at {leap.end:.3g}",
            fix=f"lr={leap.low:.3g} also at step {leap.step}: check what sets the rate there",
            site=leap.site,
            step=leap.step,
            evidence=[
                around.evidence("learning rate around that step"),
                loss.evidence("loss"),
                *optimizer_made(run),
            ],
        )

    def _finding(
        self, run: RunView, severity: Severity, loss: Series, weights: Sequence[Series], size: float
    ) -> Finding:
        worst = max(weights, key=lambda s: typical([s.first(self.window).max]))
        site, rate = highest_rate(run)
        at = f"learning rate {rate:.3g}" if rate else "the learning rate"
        return self.finding(
            severity,
            message=f"{at} is too high: one step changes the weights by {size:.0%}, and {self._course(loss)}",
            fix=_fix(rate, size),
            site=site,
            step=int(worst.steps[0]),
            evidence=[
                loss.evidence("loss"),
                worst.finite().evidence(f"relative change of {run.name(worst.site)} in one step"),
                *optimizer_made(run),
            ],
        )

    def _course(self, loss: Series) -> str:
        start, bad = self.loss.begin(loss), loss.first_nonfinite()
        if bad is not None:
            return (
                f"the loss went from {start:.3g} to {loss.finite().max:.3g} and was non-finite at step {bad}"
            )
        end = loss.last(self.window).median
        peak = self.burst.peak(loss, start, end, self.window)
        via = "" if peak is None else f" to {peak:.3g}, then"
        return f"the loss went from {start:.3g}{via} to {end:.3g} in {loss.span} steps"

    def unjudged(self, run: RunView) -> str | None:
        compared = self.trial.read(run)
        if compared is not None and compared.found.warms_up:
            return "a schedule warms up to this learning rate, but the experiment used it from the first step"
        if run.has(LearningRateTooHighFact):
            return why_not(run, self.name)
        return too_few(run.longest(signals.LOSS, "train"), self.patience, "steps")


def _fix(rate: float | None, size: float) -> str:
    """Powers of ten down to an update of a hundredth, the upper end of what is healthy."""
    if not rate:
        return "use a tenth of the learning rate"
    factor = 10 ** max(math.ceil(math.log10(max(size, 0.1) / 0.01)), 1)
    return f"lr={rate / min(factor, 1000):.1g}  # instead of {rate:.3g}"
