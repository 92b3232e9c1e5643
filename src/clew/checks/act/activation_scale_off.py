"""ACT004 activation-scale-off

## What it detects
A hidden layer whose outputs have a standard deviation above a hundred, step after step.

## Why is this bad?
Layers, losses and learning rates are designed for values of about unit size. Outputs in the hundreds
make the logits or predictions after them as large, and the gradients too, and lose precision in 16-bit
formats.

## How to fix
Find what makes them large: a sum over many elements where a mean was intended, a missing division by the
square root of the width, inputs in raw units. A normalisation layer restores the scale.

## Known problems
It is a warning only where the loss has made no progress; otherwise training copes, and it is advice.
Models with normalisation layers get advice at most. The output layer is exempt: a regression in raw
units needs large outputs.

## References
- LeCun et al., Efficient BackProp, 1998, section 4.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from clew.checks.base import Check
from clew.checks.evidence.layer_pairs import NoProgress, hidden_layers
from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.checks.trainings import TRAINING
from clew.checks.wording import too_few
from clew.records import signals
from clew.records.facts.model_facts import ModelFact
from clew.records.finding import Finding


@dataclass(frozen=True)
class ActivationScaleOff(Check):
    id = "ACT004"
    name = "activation-scale-off"
    needs = (
        signals.ACTIVATION.std,
        signals.LOSS,
        ModelFact,
    )
    scope = TRAINING

    caused_by = (
        "half-precision-overflow",
        "poor-initialisation",
        "weights-diverging",
        "step-size-faults",
        "scale-faults",
    )

    large: float = 100.0  # standard deviation of a hidden layer's outputs; 0.5 to 2 is normal
    window: int = 20  # the last sampled steps
    sustained: float = 0.9  # share of the window that must be bad
    no_progress: NoProgress = field(default_factory=NoProgress)

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        for series in filter(self._large, hidden_layers(run, signals.ACTIVATION.std)):
            std = series.last(self.window).median
            yield self.finding(
                self.no_progress.severity(run),
                message=f"the outputs of layer {run.name(series.site)} have a standard deviation of "
                f"{std:.3g}; about 1 is normal",
                fix="x.mean(1) instead of x.sum(1), a division by sqrt(width), or nn.LayerNorm before it",
                site=series.site,
                step=series.onset(series.values > self.large, self.sustained),
                evidence=series.evidence(f"standard deviation of the outputs of {run.name(series.site)}"),
            )

    def _large(self, series: Series) -> bool:
        recent = series.last(self.window)
        return len(recent) == self.window and recent.share_above(self.large) >= self.sustained

    def unjudged(self, run: RunView) -> str | None:
        return too_few(run.longest(signals.ACTIVATION.std), self.window, "sampled steps")
