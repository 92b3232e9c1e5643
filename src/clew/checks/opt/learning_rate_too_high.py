"""OPT004 learning-rate-too-high

## What it detects
A loss that diverges (rises far above its start, or grows until it is non-finite), or that makes no
progress at all, while a single step changes the weights by more than a tenth of their size. Also a loss
that the first steps blow up and that then stays above half of its start, or that leaves a layer with
nearly all units dead; and a learning rate that jumps to many times all earlier values, with a loss that
never recovers. `clew check` runs an experiment: from the same start, over a few dozen steps and three
orders of the batches, the program's rate makes no progress while a tenth or a hundredth of it does.

## Why is this bad?
Such large steps jump over every minimum. Above twice the inverse of the curvature, each step ends
farther from the minimum than it started, and the loss grows without bound; just below that, it
oscillates.

## How to fix
Divide the learning rate by ten until the loss falls; usual starting points are 1e-3 for Adam and
0.01 to 0.1 for SGD. A healthy step changes the weights by about a thousandth of their size. Warm
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
from dataclasses import dataclass
from statistics import median

import numpy as np

from clew.checks.base import Check
from clew.checks.evidence.experiment_outcome import why_not
from clew.checks.evidence.gradient_depth import first_over_weight, is_weight
from clew.checks.evidence.loss_course import train_losses
from clew.checks.evidence.rate_trials import rate_trial, where
from clew.checks.loop.accumulation_unscaled import scale_free
from clew.checks.needs import any_of
from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.checks.trainings import FIT
from clew.records import signals
from clew.records.facts.experiment_facts import LearningRateTooHighFact
from clew.records.finding import Evidence, Finding, Severity
from clew.records.site import Site


@dataclass(frozen=True)
class LearningRateTooHigh(Check):
    id = "OPT004"
    name = "learning-rate-too-high"
    needs = (
        any_of(signals.LOSS, LearningRateTooHighFact),
        any_of(signals.UPDATE_RATIO, LearningRateTooHighFact),
    )
    scope = FIT

    groups = ("rate-faults", "step-size-faults")
    caused_by = (
        "missing-zero-grad",
        "accumulation-unscaled",
        "over-regularised",
        "poor-initialisation",
        "scale-faults",
        "network-faults",
    )

    ratio: float = 0.1  # update over weight, of the median weight; about 1e-3 is healthy
    jump: float = 0.5  # the same, of the largest of the first steps: weights half replaced in one step
    away: float = 3.0  # diverged: loss in units of its start; the noise of a healthy one hardly triples it
    stuck: float = 0.9  # no progress: share of its start that the loss still has; noise makes some
    start: int = 5  # losses whose median is the start; more would take in the first progress
    burst: float = 10.0  # a jump of the loss, in units of its start, that no noise makes
    recovered: float = 0.5  # share of its start that the loss must come down to, to forgive a burst
    leap: float = 10.0  # rate over the highest before it; schedules rise in smaller steps
    settled: int = 5  # steps before such a leap; the first ones of a warm-up multiply the rate
    killed: float = 0.9  # share of a layer's units that are silent in the end
    alive: float = 0.5  # the same at the first step: a layer that began so was not killed by the steps
    floor: float = 0.1  # share of its start below which a loss has learned with what is left
    window: int = 20  # losses, or sampled steps, at either end: enough for a steady median
    patience: int = 50  # steps before a loss that stands still is reported; a warm-up may need some
    steep: float = 10.0  # gradient over weight at the first step; healthy ones are around 0.1 to 1
    ordinary: float = 0.1  # learning rate up to which such a gradient, not the rate, is to blame
    seeds: int = 3  # orders of the batches in which the experiment must give the same result
    behind: float = 0.1  # share of the fall at a lower rate; rates in use gain several times the lower one's
    fell: float = 0.05  # share of its start by which the loss must fall at the lower rate to show anything

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        tried = list(self._tried(run))
        yield from tried or self._watched(run)

    def _tried(self, run: RunView) -> Iterator[Finding]:
        trial = rate_trial(run, self.name, self.seeds)
        if trial is None or trial.warms_up or not trial.other < trial.rate:
            return
        least = min(trial.other_gains)
        if least < self.fell * abs(trial.start) or max(trial.gains) > self.behind * least:
            return
        ended, lower = (trial.start - median(gains) for gains in (trial.gains, trial.other_gains))
        yield self.finding(
            Severity.WARNING,
            message=f"learning rate {trial.rate:.3g} is too high: on a snapshot, {trial.steps} steps take "
            f"the loss from {trial.start:.3g} to {ended:.3g}, and to {lower:.3g} at {trial.other:.2g}",
            fix=f"lr={trial.other:.1g}  # instead of {trial.rate:.3g}",
            site=where(run, self.name),
            step=0,
            evidence=trial.evidence(run),
        )

    def _watched(self, run: RunView) -> Iterator[Finding]:
        weights = [s for site, s in run.series("update.ratio") if is_weight(run, site)]
        losses = train_losses(run)
        leap = self._leap(run, losses[0]) if len(losses) == 1 else None
        if leap is not None:
            yield leap
            return
        size, from_the_start = self._size(weights)
        if not size or self._steep_from_the_start(run):
            return
        gone = [x for x in losses if self._diverged(x) and (from_the_start or not self._fell(x))]
        if gone:
            yield self._finding(run, Severity.ERROR, gone[0], weights, size)
        elif len(losses) == 1 and (
            self._stands(losses[0]) or (from_the_start and self._burst(run, losses[0]))
        ):
            yield self._finding(run, Severity.WARNING, losses[0], weights, size)

    def _size(self, weights: Sequence[Series]) -> tuple[float, bool]:
        """The size of an update if it is large, else 0, and whether it was so from the start."""
        early = _typical([s.first(self.window).median for s in weights])
        # From zero, any first step is infinitely large: such weights can't be said to jump.
        jump = _typical([s.first(self.window).max for s in weights if math.isfinite(s.values[0])])
        late = _typical([s.finite().last(self.window).median for s in weights])
        if early > self.ratio or jump > self.jump:
            return early if early > self.ratio else jump, True
        return (late, False) if late > self.ratio else (0.0, False)

    def _diverged(self, loss: Series) -> bool:
        level = self._level(loss)
        if loss.first_nonfinite() is not None:
            grown = loss.before(loss.first_nonfinite() or 0).last(self.window).max
            return grown > level
        return len(loss) >= 2 * self.window and loss.last(self.window).median > level

    def _begin(self, loss: Series) -> float:
        """The loss at the start: a divergence may show in the second value already."""
        first = loss.first(self.start).finite()
        return min(float(first.values[0]), first.median) if len(first) else float("nan")

    def _level(self, loss: Series) -> float:
        """Above this the loss has left; one that changes sign has its first spread as unit."""
        start, first = self._begin(loss), loss.first(self.window)
        unit = max(abs(start), first.max - first.min) if loss.min < 0 < loss.max else abs(start)
        return start + (self.away - 1) * unit

    def _fell(self, loss: Series) -> bool:
        """Whether training made progress before the loss went away: then something else happened."""
        return loss.finite().min < self.stuck * self._begin(loss)

    def _stands(self, loss: Series) -> bool:
        enough = len(loss) >= self.patience and loss.min >= 0
        return enough and loss.last(self.window).median >= self.stuck * self._begin(loss)

    def _leap(self, run: RunView, loss: Series) -> Finding | None:
        """A rate far above all before it, that took the loss away to where it never came back from."""
        for site, rate in run.series("lr"):
            before = np.maximum.accumulate(rate.values)[:-1]
            leaps = np.flatnonzero((rate.values[1:] > self.leap * before) & (before > 0)) + 1
            for at in leaps[leaps >= self.settled][:1]:
                step = int(rate.steps[at])
                usual, after = loss.before(step + 1).last(self.window), loss.since(step + 1)
                blown = after.first(self.window).max > self.burst * usual.median > 0
                late = after.last(self.window).median >= self.stuck * usual.median
                if blown and late and len(after) >= self.patience and loss.min >= 0:
                    return self._leapt(run, site, rate, int(at), loss)
        return None

    def _leapt(self, run: RunView, site: Site, rate: Series, at: int, loss: Series) -> Finding:
        step, high, low = int(rate.steps[at]), float(rate.values[at]), float(rate.values[at - 1])
        usual = loss.before(step + 1).last(self.window).median
        worst, end = loss.since(step).first(self.window).max, loss.last(self.window).median
        return self.finding(
            Severity.WARNING,
            message=f"the learning rate jumps from {low:.3g} to {high:.3g} at step {step}: the loss goes "
            f"from {usual:.3g} to {worst:.3g} and ends at {end:.3g}",
            fix=f"lr={low:.3g} also at step {step}: check what sets the rate there",
            site=site,
            step=step,
            evidence=[
                rate.since(step - self.window)
                .first(2 * self.window)
                .evidence("learning rate around that step"),
                loss.evidence("loss"),
                *_made(run),
            ],
        )

    def _burst(self, run: RunView, loss: Series) -> bool:
        """Blown up by the first steps, and not much the wiser since: the network was wrecked."""
        if len(loss) < self.patience or loss.min < 0:
            return False
        begin, end = self._begin(loss), loss.last(self.window).median
        blown = loss.first(self.window).max > self.burst * begin
        return blown and (end > self.recovered * begin or (end > self.floor * begin and self._killed(run)))

    def _killed(self, run: RunView) -> bool:
        """Whether a layer that was alive at first has hardly a unit left."""
        return any(
            s.values[0] < self.alive and s.last(self.window).median >= self.killed
            for _, s in run.series("activation.dead_fraction")
        )

    def clears(self, run: RunView) -> bool:
        """Small steps throughout. Large ones with a loss that falls are no proof of either."""
        weights = [s.finite() for site, s in run.series("update.ratio") if is_weight(run, site)]
        return bool(weights) and _typical([s.max for s in weights]) <= self.ratio

    def _steep_from_the_start(self, run: RunView) -> bool:
        rates = [s.values[0] for _, s in run.series("lr")]
        steep = first_over_weight(run) >= self.steep and not scale_free(run)  # Adam's steps don't mind
        return bool(rates) and steep and max(rates) <= self.ordinary

    def _course(self, loss: Series) -> str:
        start, bad = self._begin(loss), loss.first_nonfinite()
        if bad is not None:
            return (
                f"the loss went from {start:.3g} to {loss.finite().max:.3g} and was non-finite at step {bad}"
            )
        end, peak = loss.last(self.window).median, loss.first(self.window).max
        by_way_of = f" via {peak:.3g}" if start > 0 and peak > self.burst * max(start, end) else ""
        return f"the loss went from {start:.3g}{by_way_of} to {end:.3g} in {loss.span} steps"

    def _finding(
        self, run: RunView, severity: Severity, loss: Series, weights: Sequence[Series], size: float
    ) -> Finding:
        worst = max(weights, key=lambda s: _typical([s.first(self.window).max]))
        site, rate = _rate(run)
        evidence = [
            loss.evidence("loss"),
            worst.finite().evidence(f"change of {run.name(worst.site)} in one step, as a share of its size"),
        ]
        evidence += _made(run)
        at = f"learning rate {rate:.3g}" if rate else "the learning rate"
        return self.finding(
            severity,
            message=f"{at} is too high: one step changes the weights by {size:.0%}, and {self._course(loss)}",
            fix=_fix(rate, size),
            site=site,
            step=int(worst.steps[0]),
            evidence=evidence,
        )

    def unjudged(self, run: RunView) -> str | None:
        trial = rate_trial(run, self.name, self.seeds)
        if trial is not None and trial.warms_up:
            return "a schedule warms up to this learning rate, the experiment uses it from the first step on"
        if run.experiment(self.name) is not None:
            return None
        if why_not(run, self.name) is not None:
            return why_not(run, self.name)
        most = max((len(s) for s in train_losses(run)), default=0)
        return None if most >= self.patience else f"needs {self.patience} steps, has {most}"


def _made(run: RunView) -> list[Evidence]:
    return [Evidence(f"{o.kind} created at {o.file}:{o.line}") for o in run.optimizers[:1] if o.file]


def _typical(sizes: Sequence[float]) -> float:
    """The median over the weights; 0 if nothing is known."""
    known = [size for size in sizes if not math.isnan(size)]
    return median(known) if known else 0.0


def _share(size: float) -> str:
    return f"{size:.0%}" if size < 10 else f"{size:.3g} times their size"


def _rate(run: RunView) -> tuple[Site, float | None]:
    """The `step()` call with the highest learning rate, and that rate."""
    rates = [(s.max, site) for site, s in run.series("lr") if not math.isnan(s.max)]
    if not rates:
        return next((site for site, _ in run.series("grad.norm")), Site()), None
    rate, site = max(rates, key=lambda pair: pair[0])
    return site, rate


def _fix(rate: float | None, size: float) -> str:
    """Powers of ten down to an update of a hundredth, the upper end of what is healthy."""
    if not rate:
        return "use a tenth of the learning rate"
    factor = 10 ** max(math.ceil(math.log10(max(size, 0.1) / 0.01)), 1)
    return f"lr={rate / min(factor, 1000):.1g}  # instead of {rate:.3g}"
