"""DATA009 unnormalised-target

## What it detects
A regression whose targets are far larger than the model's outputs: a root mean square above 50, and
predictions that start many times smaller.

## Why is this bad?
An untrained network outputs values of about one. With targets in the thousands (a price in dollars), the
loss and its gradients start in the millions, so that plain SGD diverges; Adam moves the output by about
the learning rate per step and takes very long to get there.

## How to fix
Standardise the targets with the mean and standard deviation of the training set, and undo it on
predictions: `prediction * std + mean`. Take the logarithm of targets that span orders of magnitude.

## Known problems
It is not a warning for a model whose last layer was initialised to the right scale, or that has learned
its targets anyway.

## References
- Bishop, Neural Networks for Pattern Recognition, 1995, section 8.2: rescaling of targets.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.loss_inputs import REGRESSION
from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.checks.wording import too_few
from clew.records import signals
from clew.records.finding import Evidence, Finding, Severity
from clew.records.signal_types import TensorSignals
from clew.records.site import Site


@dataclass(frozen=True)
class UnnormalisedTarget(Check):
    id = "DATA009"
    name = "unnormalised-target"
    needs = (
        signals.TARGET.mean,
        signals.TARGET.std,
        signals.LOSS_INPUT.mean,
        signals.LOSS_INPUT.std,
    )

    groups = ("scale-faults",)

    # Adam at 1e-3 moves an output bias by 1e-3 a step: 50,000 steps for a target of 50.
    rms: float = 50.0  # root mean square of the targets
    gap: float = 10.0  # how many times smaller predictions are at the start; about 1 at the right scale
    samples: int = 3  # sampled batches before the check runs
    window: int = 5  # sampled batches at the start that show where predictions begin
    learned: float = 0.2  # late loss over the targets' variance; below it, the model has learned them

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        for site, means in run.series(signals.TARGET.mean, "train"):
            if site.op not in REGRESSION or len(means.finite()) < self.samples:
                continue
            target = _rms(run, signals.TARGET, site, len(means))
            prediction = _rms(run, signals.LOSS_INPUT, site, self.window)
            if target > self.rms and prediction < target / self.gap:
                yield self._finding(run, site, means, target, prediction)

    def _finding(self, run: RunView, site: Site, means: Series, target: float, prediction: float) -> Finding:
        std = run.at_site(signals.TARGET.std, site)
        spread = std.median if std is not None else float("nan")
        return self.finding(
            Severity.ADVICE if self._has_learned(run, site, spread) else Severity.WARNING,
            message=f"the regression targets have a magnitude of about {target:.3g} (mean "
            f"{means.median:.4g}, standard deviation {spread:.3g}), while predictions "
            f"start at {prediction:.2g}",
            fix=f"y = (y - {means.median:.4g}) / {spread:.4g}  # and back: prediction * {spread:.4g} + "
            f"{means.median:.4g}",
            site=site,
            step=int(means.steps[0]),
            evidence=[
                means.evidence("mean of the targets, batch by batch"),
                Evidence(f"predictions start with a root mean square of {prediction:.3g}"),
            ],
        )

    def _has_learned(self, run: RunView, site: Site, spread: float) -> bool:
        """Whether the late loss is far below the spread of the targets."""
        losses = [series.finite().last(10) for _, series in run.series(signals.LOSS, "train")]
        late = min((series.median for series in losses if len(series)), default=float("inf"))
        limit = spread**2 if site.op == "mse_loss" else spread
        return late < self.learned * limit

    def unjudged(self, run: RunView) -> str | None:
        series = [s for site, s in run.series(signals.TARGET.mean, "train") if site.op in REGRESSION]
        most = max((len(s.finite()) for s in series), default=self.samples)
        return too_few(most, self.samples, "sampled batches")


def _rms(run: RunView, measured: TensorSignals, site: Site, window: int) -> float:
    mean, std = run.at_site(measured.mean, site), run.at_site(measured.std, site)
    if mean is None or std is None:
        return float("nan")
    mean, std = mean.first(window), std.first(window)
    if measured is signals.TARGET:
        return math.hypot(mean.median, std.median)
    first = [math.hypot(m, s) for m, s in zip(mean.values, std.values, strict=False)]
    return first[0] if first else float("nan")  # before any step has changed it
