"""SYM005 loss-oscillates

## What it detects
A loss that goes up and down by a tenth or more of its level although every step sees the same batch:
full-batch training without dropout, in which only the steps themselves can raise the loss.

## Why is this bad?
The steps overshoot: along the steepest direction, each lands on the other side of the valley, and the
loss oscillates instead of falling.

## How to fix
Halve the learning rate until the loss falls smoothly, or lower the momentum; learning rate decay over
the last part of training lets it settle.

## Known problems
A symptom: it is reported on its own only where no cause was found. With changing batches the noise of
the data looks the same, so that is not checked, nor are several losses, nor an optimizer that evaluates
the loss several times per step (LBFGS).

## References
- Cohen et al., Gradient descent on neural networks typically occurs at the edge of stability, 2021.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from clew.checks.base import Check
from clew.checks.evidence.layer_pairs import dropouts
from clew.checks.evidence.loss_trend import highest_rate, only_loss, searches_lines
from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.checks.trainings import TRAINING
from clew.checks.wording import too_few
from clew.records import signals
from clew.records.finding import Finding, Severity


@dataclass(frozen=True)
class LossOscillates(Check):
    id = "SYM005"
    name = "loss-oscillates"
    rank = 1150
    needs = (
        signals.LOSS,
        signals.BATCH_HASH,
    )
    scope = TRAINING
    symptom = True
    confidence = "possible"

    caused_by = ("unshuffled-data", "single-label-batches", "dataset-mutates", "step-size-faults")

    swing: float = 0.1  # median step up or down over the loss; near a minimum steps are far smaller
    upward: float = 0.25  # share of the steps that raise the loss
    level: float = 0.05  # loss at the end over that at the start; below it, swings do not matter
    window: int = 40  # the last losses
    batches: int = 10  # sampled batches that must all be the same

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        loss = only_loss(run)
        if loss is None or len(loss) < 2 * self.window or not self._same_batch(run):
            return
        if list(dropouts(run)) or searches_lines(run):
            return
        recent = loss.last(self.window)
        steps = np.diff(recent.values)
        swing = float(np.median(np.abs(steps))) / recent.median if recent.median > 0 else 0.0
        upward = float(np.mean(steps > 0))
        if recent.median < self.level * loss.first(5).median:
            return
        if swing > self.swing and self.upward <= upward <= 1 - self.upward:
            yield self._finding(run, loss, swing, upward)

    def _same_batch(self, run: RunView) -> bool:
        hashes = [s for _, s in run.series(signals.BATCH_HASH)]
        return bool(hashes) and all(len(s) >= self.batches and s.min == s.max for s in hashes)

    def _finding(self, run: RunView, loss: Series, swing: float, upward: float) -> Finding:
        site, rate = highest_rate(run)
        lower = (
            f"lr={rate / 2:.2g}  # instead of {rate:.3g}; halve it again until the loss falls smoothly"
            if rate
            else ""
        )
        return self.finding(
            Severity.ADVICE,
            message=f"the loss swings by {swing:.0%} from step to step and rises in {upward:.0%} of them, "
            "though every step sees the same batch: the steps overshoot",
            fix=lower or "halve the learning rate",
            site=site,
            step=int(loss.last(self.window).steps[0]),
            evidence=loss.evidence("loss"),
        )

    def unjudged(self, run: RunView) -> str | None:
        if not self._same_batch(run):
            return "the batches differ, and their noise looks like an oscillation"
        return too_few(run.longest(signals.LOSS, "train"), 2 * self.window, "steps")
