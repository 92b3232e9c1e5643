"""How much a step changes the weights, and what experiments with other learning rates showed."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from clew.checks.evidence.experiment_outcome import curve
from clew.checks.evidence.gradient_depth import first_over_weight, is_weight
from clew.checks.evidence.loss_trend import highest_rate
from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.records import signals
from clew.records.facts.experiment_facts import SourceLine
from clew.records.facts.learning_experiment_facts import (
    ComparedRates,
    LearningRateTooHighFact,
    LearningRateTooLowFact,
    RateGains,
)
from clew.records.finding import Evidence
from clew.records.site import Site

SCALE_FREE = re.compile(r"adam|adagrad|adadelta|rmsprop|rprop|lion|adafactor|lamb|sign", re.IGNORECASE)


def scale_free(run: RunView) -> bool:
    """Whether no optimizer takes larger steps for larger gradients."""
    return bool(run.optimizers) and all(SCALE_FREE.search(o.kind) for o in run.optimizers)


def weight_updates(run: RunView) -> list[Series]:
    """The updates of each weight, divided by its norm."""
    return [series for site, series in run.series(signals.UPDATE_RATIO) if is_weight(run, site)]


def typical(sizes: Sequence[float]) -> float:
    """The median over the weights; 0 if nothing is known."""
    known = [size for size in sizes if not math.isnan(size)]
    return median(known) if known else 0.0


@dataclass(frozen=True)
class LargeUpdates:
    """Updates that replace a large part of the weights."""

    ratio: float = 0.1  # update over weight, of the median weight; about 1e-3 is healthy
    jump: float = 0.5  # the same, of the largest of the first steps: weights half replaced in one step

    def size(self, weights: Sequence[Series], window: int) -> tuple[float, bool]:
        """The size of an update if it is large, else 0, and whether it was so from the start."""
        early = typical([s.first(window).median for s in weights])
        # The first step of a weight that starts at zero is infinitely large, but no jump.
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
        rates = [s.values[0] for _, s in run.series(signals.LR)]
        steep = first_over_weight(run) >= self.gradient and not scale_free(run)  # Adam rescales them
        return bool(rates) and steep and max(rates) <= self.rate


@dataclass(frozen=True)
class RateComparison:
    """The user's rate and the best other one, over the same seeds."""

    found: ComparedRates
    own: RateGains
    other: RateGains

    @property
    def bottomless(self) -> bool:
        """Whether the loss falls below zero: the higher the rate, the further, so gains can't be compared."""
        return self.found.start < max(self.other.gains)

    def evidence(self, run: RunView, name: str) -> list[Evidence]:
        """For the check of this name."""
        start = self.found.start
        own, other = (
            f"{', '.join(f'{start - gain:.3g}' for gain in row.gains)} at {row.rate:.2g}"
            for row in (self.own, self.other)
        )
        seeds = f"after {self.found.steps} steps from {start:.3g}, over {len(self.own.gains)} shuffles"
        return [*curve(run, name, 0), *curve(run, name, 1), Evidence(f"loss {seeds}: {own}; {other}")]


def rate_comparison(found: ComparedRates | None, seeds: int) -> RateComparison | None:
    """None if the experiment was not run, found no better rate, or was clear after one seed."""
    if found is None or len(found.rows) != 2:
        return None
    own, other = found.rows
    if len(own.gains) < seeds or len(own.gains) != len(other.gains):
        return None
    return RateComparison(found, own, other)


@dataclass(frozen=True)
class LowerRateExperiment:
    """What the experiment must show for a lower rate to be the better one."""

    seeds: int = 3  # shuffles of the batches with which the experiment must give the same result
    behind: float = 0.1  # share of the fall at a lower rate; sound rates gain several times as much
    fell: float = 0.05  # share of the first loss by which it must fall at the lower rate to show anything

    def read(self, run: RunView) -> RateComparison | None:
        """The comparison, whether or not it shows that."""
        return rate_comparison(run.outcome(LearningRateTooHighFact), self.seeds)

    def shown(self, run: RunView) -> RateComparison | None:
        """The comparison, if it shows that a lower rate is better."""
        compared = self.read(run)
        if compared is None or compared.found.warms_up or not compared.other.rate < compared.own.rate:
            return None
        least = min(compared.other.gains)
        if least < self.fell * abs(compared.found.start) or max(compared.own.gains) > self.behind * least:
            return None
        return compared  # also where a loss that is not finite can't be compared


@dataclass(frozen=True)
class HigherRateExperiment:
    """What the experiment must show for a much higher rate to be the better one."""

    seeds: int = 3  # shuffles of the batches with which the experiment must give the same result
    share: float = 0.005  # of the best fall in the same steps; slow but usual rates have a few hundredths
    factor: float = 100.0  # by which the better rate is higher; less may be patience, or a cautious choice
    moved: float = 0.1  # share of the first loss by which it must fall at the higher rate

    def read(self, run: RunView) -> RateComparison | None:
        """The comparison, whether or not it shows that."""
        return rate_comparison(run.outcome(LearningRateTooLowFact), self.seeds)

    def shown(self, run: RunView) -> RateComparison | None:
        """The comparison, if it shows that a higher rate is better."""
        compared = self.read(run)
        # 0.99: a rate is a product, and not exactly the factor times another.
        if (
            compared is None
            or compared.other.rate < 0.99 * self.factor * compared.own.rate
            or compared.bottomless
        ):
            return None
        least = min(compared.other.gains)
        if least < self.moved * abs(compared.found.start) or max(compared.own.gains) > self.share * least:
            return None
        return compared


def optimizer_made(run: RunView) -> list[Evidence]:
    """Where the first optimizer was created."""
    return [Evidence(f"{o.kind} created at {o.file}:{o.line}") for o in run.optimizers[:1] if o.file]


def where(run: RunView, line: SourceLine) -> Site:
    """The call of `step()`, else the line at which the loss was seen."""
    site, _ = highest_rate(run)
    return site if site.file else line.site
