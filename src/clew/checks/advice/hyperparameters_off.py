"""ADV003 hyperparameters-off

## What it detects
Two or more settings that other checks found wrong, or doubtful, together: learning rate, weight
decay, dropout, or the pace of the updates.

## Why is this bad?
Settings depend on each other: a lower learning rate wants less decay and more steps. Mending one
after the other by hand takes many runs and often ends where it began.

## How to fix
A sweep over the settings named, on a logarithmic scale, two powers of ten to each side, judged by
the evaluation loss after a short run. For the learning rate a range test
is quicker: raise it from step to step, and take a tenth of where the loss turns up.

## Known problems
Advice, drawn from other findings: it adds no evidence of its own.

## References
- Bergstra and Bengio, Random search for hyper-parameter optimization, 2012.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.api import Check
from clew.checks.optimisation.learning_rate_too_high import LearningRateTooHigh
from clew.checks.optimisation.learning_rate_too_low import LearningRateTooLow
from clew.checks.optimisation.over_regularised import OverRegularised
from clew.checks.optimisation.update_ratio_off import UpdateRatioOff
from clew.checks.structure.dropout_misplaced import DropoutMisplaced
from clew.checks.symptoms.trend import highest_rate
from clew.checks.view import RunView
from clew.checks.wording import listed
from clew.records import Evidence, Finding, Severity

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
    needs = ("loss", "lr")

    least: int = 2  # findings of settings, hints among them; a single one has its own fix

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        found = [f for kind in SETTINGS if (f := _worst(kind(), run)) is not None]
        if len(found) < self.least:
            return
        site, rate = highest_rate(run)
        span = f"lr from {rate / 100:.1g} to {rate * 100:.1g}" if rate else "the learning rate"
        yield self.finding(
            Severity.ADVICE,
            message=f"several settings are off at once ({listed([f.check for f in found])}): a sweep finds "
            "them faster than mending one by one",
            fix=f"sweep {span} on a logarithmic scale, with the other settings beside it",
            site=site,
            step=min((f.step for f in found if f.step is not None), default=None),
            evidence=[Evidence(f.message, site=f.site) for f in found],
        )


def _worst(check: Check, run: RunView) -> Finding | None:
    """What a check says first."""
    if not all(run.has(need) for need in check.needs):
        return None
    return next(iter(check.diagnose(run)), None)
