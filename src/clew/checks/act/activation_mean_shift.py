"""ACT005 activation-mean-shift

## What it detects
A hidden layer whose outputs have a mean more than ten times as large as their standard deviation, step
after step.

## Why is this bad?
The next layer sees one large constant with a small signal on top. The gradients of its weights all point
the same way, and the learning rate has to be small enough for the offset rather than for the signal.

## How to fix
Start biases at zero and weights around zero (`torch.randn`, not `torch.rand`); centre the input;
or add a normalisation layer after it.

## Known problems
It is a warning only where the loss has made no progress, and advice otherwise. Only linear and
convolution layers are checked, not functions such as sigmoid, whose outputs are always positive.

## References
- LeCun et al., Efficient BackProp, 1998, section 4.3.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

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
class ActivationMeanShift(Check):
    id = "ACT005"
    name = "activation-mean-shift"
    needs = (
        signals.ACTIVATION.mean,
        signals.ACTIVATION.std,
        signals.LOSS,
        ModelFact,
    )
    scope = TRAINING

    caused_by = ("poor-initialisation", "dead-units", "weights-diverging", "step-size-faults", "scale-faults")

    shift: float = 10.0  # mean over standard deviation of a layer's outputs; below 1 is healthy
    window: int = 20  # the last sampled steps
    sustained: float = 0.9  # share of the window that must be bad
    no_progress: NoProgress = field(default_factory=NoProgress)

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        spread = {s.site: s for s in hidden_layers(run, signals.ACTIVATION.std)}
        for means in hidden_layers(run, signals.ACTIVATION.mean):
            stds = spread.get(means.site)
            shifts = None if stds is None else self._shifts(means, stds)
            if shifts is not None:
                size = shifts.last(self.window).median
                yield self.finding(
                    self.no_progress.severity(run),
                    message=f"the outputs of layer {run.name(means.site)} have a mean of "
                    f"{means.last(1).median:.3g}, {size:.0f} times their standard deviation",
                    fix="nn.init.zeros_(layer.bias), weights centred on zero, or nn.BatchNorm1d() after it",
                    site=means.site,
                    step=shifts.onset(shifts.values > self.shift, self.sustained),
                    evidence=shifts.evidence(f"mean divided by standard deviation at {run.name(means.site)}"),
                )

    def _shifts(self, means: Series, stds: Series) -> Series | None:
        """The mean over the standard deviation in each sample; None if it is not too large."""
        if not np.array_equal(means.steps, stds.steps):
            return None
        ratio = np.abs(means.values) / np.where(stds.values > 0, stds.values, np.nan)
        shifts = Series(signals.ACTIVATION.mean.name, means.site, means.steps, ratio)
        recent = shifts.last(self.window)
        bad = len(recent) == self.window and recent.share_above(self.shift) >= self.sustained
        return shifts if bad else None

    def unjudged(self, run: RunView) -> str | None:
        return too_few(run.longest(signals.ACTIVATION.mean), self.window, "sampled steps")
