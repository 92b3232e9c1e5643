"""ACT005 activation-mean-shift

## What it detects
A hidden layer all of whose outputs share an offset more than ten times as large as they spread,
step after step.

## Why is this bad?
The layer behind sees one large number with a little ripple on it. Its weights' gradients all
point the same way, the curvature is that of the offset, and the learning rate has to be small
enough for the offset rather than for the signal.

## How to fix
Start biases at zero and weights around zero (`torch.randn`, not `torch.rand`); centre the input;
or put a normalisation layer behind.

## Known problems
A warning only where the loss has made no progress, else advice. Judged at linear and convolution
layers, not at functions such as a sigmoid, whose outputs are positive by nature.

## References
- LeCun et al., Efficient BackProp, 1998, section 4.3.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from clew.checks.base import Check
from clew.checks.evidence.hidden_layers import hidden_layers, no_progress, normalises
from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.checks.trainings import FIT
from clew.records.finding import Finding, Severity


@dataclass(frozen=True)
class ActivationMeanShift(Check):
    id = "ACT005"
    name = "activation-mean-shift"
    needs = ("activation.mean", "activation.std", "loss", "fact:model")
    scope = FIT

    shift: float = 10.0  # mean over standard deviation of a layer's outputs; below 1 is healthy
    window: int = 20  # sampled steps judged, the last ones
    sustained: float = 0.9  # share of the window that must be bad

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        spread = {s.site: s for s in hidden_layers(run, "activation.std")}
        bad = no_progress(run) and not normalises(run)
        for means in hidden_layers(run, "activation.mean"):
            stds = spread.get(means.site)
            shifts = None if stds is None else self._shifts(means, stds)
            if shifts is not None:
                size = shifts.last(self.window).median
                yield self.finding(
                    Severity.WARNING if bad else Severity.ADVICE,
                    message=f"the outputs of {run.name(means.site)} have a mean of "
                    f"{means.last(1).median:.3g}, {size:.0f} times their spread",
                    fix="nn.init.zeros_(layer.bias), weights centred on zero, or nn.BatchNorm1d() behind it",
                    site=means.site,
                    step=shifts.onset(shifts.values > self.shift, self.sustained),
                    evidence=shifts.evidence(f"mean over standard deviation at {run.name(means.site)}"),
                )

    def _shifts(self, means: Series, stds: Series) -> Series | None:
        """The shift over the samples, if it is too large."""
        if not np.array_equal(means.steps, stds.steps):
            return None
        ratio = np.abs(means.values) / np.where(stds.values > 0, stds.values, np.nan)
        shifts = Series("activation.mean", means.site, means.steps, ratio)
        recent = shifts.last(self.window)
        bad = len(recent) == self.window and recent.share_above(self.shift) >= self.sustained
        return shifts if bad else None

    def unjudged(self, run: RunView) -> str | None:
        most = max((len(s) for _, s in run.series("activation.mean")), default=0)
        return None if most >= self.window else f"needs {self.window} sampled steps, has {most}"
