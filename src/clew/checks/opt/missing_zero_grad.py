"""OPT001 missing-zero-grad

## What it detects
Gradients of earlier steps that were not cleared before `backward()` adds the new ones, step after step:
the optimizer uses the sum of all gradients since the run (or the epoch) began.

## Why is this bad?
Most of each update comes from old batches and old weights. It acts like momentum that never decays:
training overshoots, oscillates or diverges, and no learning rate fixes that.

## How to fix
Call `optimizer.zero_grad()` once per step, before `loss.backward()`. With gradient accumulation,
call it once per optimizer step instead of once per backward.

## Known problems
An optimizer step every k backward passes, with the gradients cleared after it, is deliberate accumulation
and is not reported. Clearing them once per epoch is reported if the epoch has more than ten steps.

## References
- PyTorch recipe, Zeroing out gradients in PyTorch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from clew.checks.base import Check
from clew.checks.evidence.loop_facts import letters, patterns
from clew.checks.run_view import RunView
from clew.checks.series import IntArray, Series
from clew.checks.trainings import PHASE
from clew.checks.wording import listed, too_few
from clew.records import signals
from clew.records.finding import Evidence, Finding, Severity
from clew.records.site import Site


@dataclass(frozen=True)
class MissingZeroGrad(Check):
    id = "OPT001"
    name = "missing-zero-grad"
    rank = 150
    needs = (signals.GRAD_STALE,)
    scope = PHASE
    confidence = "certain"

    groups = ("loop-faults", "step-size-faults")

    least: int = 3  # stale steps; two may come from a warm-up pass before the loop
    sustained: float = 0.9  # share of the steps since the second; with less, the script does clear them
    few: int = 2  # steps with a zero_grad() that are needed to say how rare they are
    often: float = 0.5  # share of the steps with one; with more, it is called on another optimizer

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        for site, series in run.series(signals.GRAD_STALE):
            later = series.skip(1)  # at the first step there are no earlier gradients
            stale = later.values == 1.0
            count = int(np.count_nonzero(stale))
            if count >= self.least and count >= self.sustained * len(later):
                what, fix = self._describe(run, site)
                yield self.finding(
                    Severity.ERROR,
                    message=f"{what}: in {count} of the {len(later)} sampled steps, they add to those of "
                    "earlier steps",
                    fix=fix,
                    site=site,
                    step=int(later.steps[int(np.argmax(stale))]),
                    evidence=[
                        later.evidence(f"stale gradients in {count / len(later):.0%} of the steps"),
                        *_growth(run, site),
                    ],
                )

    def _describe(self, run: RunView, site: Site) -> tuple[str, str]:
        """How often zero_grad() is called, and the fix for that."""
        clearing = _clearing(run)
        whose = _owner(run, site)
        if len(clearing) > self.often * run.steps and whose is not None:
            return (
                f"zero_grad() is called, but never on the optimizer of {whose.model}: its gradients are not "
                "cleared",
                f"call zero_grad() on the {whose.kind} created {whose.place}, which steps here  # before "
                "loss.backward(); at present it is called on another optimizer",
            )
        if self.few <= len(clearing) <= self.often * run.steps:
            gap = int(np.median(np.diff(clearing)))
            return (
                f"gradients are cleared only every {gap} steps",
                "optimizer.zero_grad()  # before every loss.backward(): inside the loop over the batches",
            )
        return "gradients are never cleared", "optimizer.zero_grad()  # before loss.backward()"

    def unjudged(self, run: RunView) -> str | None:
        return too_few(run.longest(signals.GRAD_STALE), self.least + 1, "optimizer steps")


def _growth(run: RunView, site: Site) -> list[Evidence]:
    """The gradient norm at the same `step()` call."""
    norms: list[Series] = [s.finite() for other, s in run.series(signals.GRAD_NORM) if other == site]
    return [
        s.evidence(f"gradient norm from {s.values[0]:.3g} to {s.values[-1]:.3g}") for s in norms if len(s) > 1
    ]


@dataclass(frozen=True)
class _Owner:
    """An optimizer, as the user knows it."""

    kind: str
    model: str
    place: str


def _clearing(run: RunView) -> IntArray:
    """The steps in which zero_grad() is called on any optimizer."""
    numbers = [n for n, pattern in patterns(run).items() if "z" in letters(pattern)]
    found = [s.steps[np.isin(s.values, numbers)] for _, s in run.series(signals.EVENTS_PATTERN)]
    return np.concatenate(found) if found else np.empty(0, np.int64)


def _owner(run: RunView, site: Site) -> _Owner | None:
    """The optimizer that steps here, known by its first step; None if several have the same, or none."""
    rates = [s for other, s in run.series(signals.LR) if other == site]
    found = [o for o in run.optimizers if rates and o.step == int(rates[0].steps[0])]
    if len(found) != 1 or len(run.optimizers) < 2:
        return None
    made = found[0]
    roots = [p.root for p in run.parameters.values() if any(i.optimizer == made.index for i in p.items)]
    if not roots or made.line is None:
        return None
    return _Owner(made.kind, listed(roots), f"on line {made.line}")
