"""LOOP003 accumulation-lost

## What it detects
Several backward passes before each optimizer step, with the gradients cleared in between, so that the step
uses only the last one. No other optimizer uses them, the weights do not change in between, and the
gradients used are those of the last backward.

## Why is this bad?
The work on all other batches is wasted: with a step every 4 batches, three quarters of the compute and
of the data. The effective batch size is a quarter of the intended one.

## How to fix
Clear the gradients once per optimizer step, right after `optimizer.step()`, not once per batch.

## Known problems
Adversarial attacks (whose first backward is for the inputs), sharpness-aware minimisation (which
moves the weights in between) and gradient surgery (which sets the gradients by hand) clear
gradients on purpose and are not reported.

## References
- PyTorch docs, Automatic mixed precision examples: gradient accumulation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.checks.trainings import PHASE
from clew.checks.wording import too_few
from clew.records import signals
from clew.records.finding import Finding, Severity


@dataclass(frozen=True)
class AccumulationLost(Check):
    id = "LOOP003"
    name = "accumulation-lost"
    needs = (signals.GRAD_LOST,)
    scope = PHASE

    groups = ("loop-faults",)

    window: int = 5  # sampled optimizer steps; a trial run before the loop loses one
    sustained: float = 0.8  # share of them that lose a backward; the last of an epoch may be complete

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        norms = dict(run.series(signals.GRAD_NORM))
        for site, series in run.series(signals.GRAD_LOST):
            later = series.finite().skip(1)  # the optimizer is not known before its first step
            norm = norms.get(site)
            if len(later) < self.window or (norm is not None and norm.max == 0.0):
                continue
            if later.share_above(0.0) >= self.sustained:
                yield self._finding(later)

    def _finding(self, lost: Series) -> Finding:
        typical = round(lost.median)
        return self.finding(
            Severity.WARNING,
            message=f"{typical} of {typical + 1} backward passes are wasted: the gradients are "
            "cleared between the backward passes of one optimizer step",
            fix="optimizer.zero_grad()  # once, right after optimizer.step(), not before every backward()",
            site=lost.site,
            step=int(lost.steps[0]),
            evidence=lost.evidence("backward passes whose gradients were not used, per optimizer step"),
        )

    def unjudged(self, run: RunView) -> str | None:
        return too_few(run.longest(signals.GRAD_LOST), self.window + 1, "sampled steps")
