"""ADV003 hyperparameters-off

## What it detects
Two or more settings that other checks found wrong or doubtful: learning rate, weight decay, dropout, or
the size of the updates. `clew check` adds a learning-rate range test: the rate is raised from step to
step over eight powers of ten, and the program's own rate lies far below where the loss begins to fall,
or above where it diverges.

## Why is this bad?
Settings depend on each other: a lower learning rate needs less decay and more steps. Tuning one after
the other by hand takes many runs and often ends where it started.

## How to fix
A sweep over the settings named, on a logarithmic scale, two powers of ten on each side, compared by the
evaluation loss after a short run. For the learning rate a range test is quicker: raise it from step to
step, and take a tenth of the rate at which the loss starts to rise.

## Known problems
Advice, based on other findings and on a test of about a hundred steps: the best rate after a hundred
steps may be too high for a long training, so a rate slightly below the range is not reported.

## References
- Bergstra and Bengio, Random search for hyper-parameter optimization, 2012.
- Smith, Cyclical learning rates for training neural networks, 2017: the range test.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.experiment_outcome import curve, or_nan, why_not
from clew.checks.evidence.learning_rate_evidence import where
from clew.checks.evidence.loss_trend import highest_rate, pretrained
from clew.checks.needs import any_of
from clew.checks.opt.learning_rate_too_high import LearningRateTooHigh
from clew.checks.opt.learning_rate_too_low import LearningRateTooLow
from clew.checks.opt.over_regularised import OverRegularised
from clew.checks.opt.update_ratio_off import UpdateRatioOff
from clew.checks.run_view import RunView
from clew.checks.str.dropout_misplaced import DropoutMisplaced
from clew.checks.thresholds import in_force
from clew.checks.wording import listed
from clew.records import signals
from clew.records.facts.learning_experiment_facts import HyperparametersOffFact
from clew.records.finding import Evidence, Finding, Severity

SETTINGS: tuple[type[Check], ...] = (
    LearningRateTooHigh,
    LearningRateTooLow,
    OverRegularised,
    UpdateRatioOff,
    DropoutMisplaced,
)


@dataclass(frozen=True)
class HyperparametersOff(Check):
    id = "ADV003"
    name = "hyperparameters-off"
    needs = (
        any_of(signals.LOSS, HyperparametersOffFact),
        any_of(signals.LR, HyperparametersOffFact),
    )

    caused_by = ("rate-faults", "network-faults", "optimizer-unfit", "poor-initialisation")

    least: int = 2  # findings about settings, including advice; a single one has its own fix
    below: float = 50.0  # how far the rate is below the start of the fall; Adam's 1e-4 often is 30 times
    noise: float = 3.0  # how many times the fall exceeds the noise of the loss at rates that change nothing
    fell: float = 0.1  # share of the first loss by which it must fall in the test to show anything

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        found = [*self._several(run), *self._ranged(run)]
        yield from found[:1]

    def _ranged(self, run: RunView) -> Iterator[Finding]:
        found = run.outcome(HyperparametersOffFact)
        if found is None or pretrained(run):
            return
        rate, low, best, diverges = map(or_nan, (found.rate, found.low, found.best, found.diverges))
        fall, noise, start = map(or_nan, (found.fall, found.noise, found.start))
        if not fall > max(self.noise * noise, self.fell * abs(start)):
            return
        high = rate > diverges and not found.warms_up
        if not high and not rate < low / self.below:
            return
        what = f"loss diverges above {diverges:.1g}" if high else f"loss starts to fall only at {low:.1g}"
        yield self.finding(
            Severity.ADVICE,
            message=f"learning rate {rate:.2g} is far from the range in which this network learns: in a "
            f"range test the {what}",
            fix=f"lr={math.sqrt(low * best):.1g}  # instead of {rate:.2g}; then sweep around it",
            site=where(run, found.line),
            step=0,
            evidence=[
                *curve(run, self.name),
                Evidence(f"the loss falls from {low:.2g} to {best:.2g}; the program's rate is {rate:.2g}"),
            ],
            confidence="possible",
        )

    def unjudged(self, run: RunView) -> str | None:
        return why_not(run, self.name)

    def _several(self, run: RunView) -> Iterator[Finding]:
        checks = in_force((kind() for kind in SETTINGS), run)
        found = [f for check in checks if (f := _worst(check, run)) is not None]
        if len(found) < self.least:
            return
        site, rate = highest_rate(run)
        span = f"lr from {rate / 100:.1g} to {rate * 100:.1g}" if rate else "the learning rate"
        yield self.finding(
            Severity.ADVICE,
            message=f"several settings are off at once ({listed([f.check for f in found])}): a sweep finds "
            "good values faster than tuning them one by one",
            fix=f"sweep {span} on a logarithmic scale, together with the other settings; "
            "clew check --only hyperparameters-off train.py shows at which rates the loss falls",
            site=site,
            step=min((f.step for f in found if f.step is not None), default=None),
            evidence=[Evidence(f.message, site=f.site) for f in found],
        )


def _worst(check: Check, run: RunView) -> Finding | None:
    """The first finding of a check."""
    if not all(run.has(need) for need in check.needs):
        return None
    return next(iter(check.diagnose(run)), None)
