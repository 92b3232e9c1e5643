"""LOSS007 initial-loss-off-chance

## What it detects
A first loss many times higher than guessing gives: ln C for C classes, ln 2 for yes-or-no questions, the
mean square of the targets for squared errors.

## Why is this bad?
An untrained model should be uncertain. One that starts out confident and wrong has outputs that are far
too large: because of large initial weights, a wrong scale or temperature, or huge inputs. The first
steps are then spent on shrinking the outputs, with gradients large enough to do damage.

## How to fix
Scale down the last layer (`nn.init.normal_(head.weight, std=0.02)`, bias zero), the embedding of tied
weights, or the factor that multiplies the scores; normalise the input.

## Known problems
Models with loaded weights are not checked: they may be confident about another task. Squared errors give
only advice: targets much smaller than 1 are common, and harmless.

## References
- Karpathy, A recipe for training neural networks, 2019: verify loss at init.
- Glorot and Bengio, Understanding the difficulty of training deep feedforward neural networks, 2010.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from clew.checks.base import Check
from clew.checks.evidence.loss_inputs import BINARY, CLASSES, series_at
from clew.checks.evidence.loss_trend import pretrained
from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.checks.wording import too_few
from clew.records import signals
from clew.records.facts.loss_facts import LossFact
from clew.records.finding import Evidence, Finding, Severity
from clew.records.site import Site


@dataclass(frozen=True)
class InitialLossOffChance(Check):
    id = "LOSS007"
    name = "initial-loss-off-chance"
    rank = 560
    needs = (LossFact,)

    caused_by = ("activation-scale-off", "poor-initialisation", "loss-faults", "scale-faults")

    # Default initialisations of healthy programs start at 1.0 to 1.5 times chance.
    times: float = 10.0  # first loss over the loss at chance, for classes: a warning
    noticeable: float = 4.0  # the same, for advice
    squared: float = 100.0  # the same for squared errors, where the user chooses the scale of the targets
    inventory: int = 4  # steps until it is known whether weights were loaded

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        if run.steps < self.inventory or pretrained(run):
            return
        for site, values in run.series(signals.LOSS_CALL_VALUE, "train"):
            chance = series_at(run, signals.LOSS_CALL_CHANCE, site)
            if chance is None or values.steps[0] != 0 or _constant_target(run, site):
                continue
            at_start, even = _first(values), _first(chance)
            ratio = at_start / even if even > 0 else math.nan
            severity = self._severity(site.op or "", ratio)
            if severity is not None:
                yield self._finding(severity, site, values, at_start, even)

    def _severity(self, op: str, ratio: float) -> Severity | None:
        if op in CLASSES + BINARY:
            if ratio >= self.times:
                return Severity.WARNING
            return Severity.ADVICE if ratio >= self.noticeable else None
        return Severity.ADVICE if ratio >= self.squared else None

    def _finding(self, severity: Severity, site: Site, values: Series, start: float, even: float) -> Finding:
        return self.finding(
            severity,
            message=f"the first loss ({site.op}) is {start:.3g}; guessing gives {even:.3g}: "
            "the model's outputs are far too large",
            fix="nn.init.normal_(head.weight, std=0.02); nn.init.zeros_(head.bias)  # the last layer",
            site=site,
            step=0,
            evidence=[
                values.first(20).evidence(f"value of the loss, {start:.3g} at the first step"),
                Evidence(f"guessing gives {even:.3g}"),
            ],
        )

    def unjudged(self, run: RunView) -> str | None:
        if pretrained(run):
            return "weights were loaded: the first loss need not be at chance level"
        return too_few(run.steps, self.inventory, "steps")


def _first(series: Series) -> float:
    """The smallest value of the first step: a line may call the loss more than once."""
    values = series.values[series.steps == series.steps[0]]
    return float(np.min(values)) if np.isfinite(values).all() else math.nan


def _constant_target(run: RunView, site: Site) -> bool:
    spread = series_at(run, signals.TARGET.std, site)
    return spread is not None and site.op not in CLASSES and spread.first(3).max == 0.0
