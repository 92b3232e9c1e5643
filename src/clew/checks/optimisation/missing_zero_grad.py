"""OPT001 missing-zero-grad

## What it detects
Gradients of earlier steps that are still there when `backward()` adds the new ones, step after
step: the optimizer uses the sum of all gradients since the run (or the epoch) began.

## Why is this bad?
Most of each update comes from batches and weights of long ago. It acts like momentum that
never fades: training overshoots, oscillates or diverges, and no learning rate makes it right.

## How to fix
Call `optimizer.zero_grad()` once per step, before `loss.backward()`. With gradient accumulation,
call it once per optimizer step instead of once per backward.

## Known problems
A step every k backwards with zeroing in between is deliberate accumulation and is not reported.
Zeroing once per epoch is reported if the epoch has more than ten steps.

## References
- PyTorch recipe, Zeroing out gradients in PyTorch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from clew.checks.api import Check
from clew.checks.fits import PHASE
from clew.checks.series import Series
from clew.checks.view import RunView
from clew.records import Evidence, Finding, Severity, Site


@dataclass(frozen=True)
class MissingZeroGrad(Check):
    id = "OPT001"
    name = "missing-zero-grad"
    needs = ("grad.stale",)
    scope = PHASE
    confidence = "certain"

    least: int = 3  # stale steps; two may come from a warm-up pass before the loop
    sustained: float = 0.9  # share of the steps since the second; below it the script does zero them

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        for site, series in run.series("grad.stale"):
            later = series.skip(1)  # at the first step there is nothing to be left over
            stale = later.values == 1.0
            count = int(np.count_nonzero(stale))
            if count >= self.least and count >= self.sustained * len(later):
                yield self.finding(
                    Severity.ERROR,
                    message=f"gradients are never cleared: {count} of the {len(later)} steps looked at add "
                    "to those of earlier steps",
                    fix="optimizer.zero_grad()  # before loss.backward()",
                    site=site,
                    step=int(later.steps[int(np.argmax(stale))]),
                    evidence=[
                        later.evidence(f"stale gradients at {count / len(later):.0%} of the steps"),
                        *_growth(run, site),
                    ],
                )

    def unjudged(self, run: RunView) -> str | None:
        most = max((len(s) for _, s in run.series("grad.stale")), default=0)
        return None if most > self.least else f"needs {self.least + 1} optimizer steps, has {most}"


def _growth(run: RunView, site: Site) -> list[Evidence]:
    """How the gradient norm went meanwhile, at the same `step()` call."""
    norms: list[Series] = [s.finite() for other, s in run.series("grad.norm") if other == site]
    return [
        s.evidence(f"gradient norm from {s.values[0]:.3g} to {s.values[-1]:.3g}") for s in norms if len(s) > 1
    ]
