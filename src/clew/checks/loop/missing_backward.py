"""LOOP001 missing-backward

## What it detects
An optimizer that steps repeatedly without any gradient: `backward()` is never called, or `zero_grad()`
clears its result before `step()` can use it.

## Why is this bad?
Optimizers skip parameters whose gradient is `None`. No weight changes, and there is no error: the loop
runs, and the loss stays at its initial value, apart from the noise of the batches.

## How to fix
Call `loss.backward()` between the forward pass and `optimizer.step()`, and `zero_grad()` before
the backward or after the step, never between the two.

## Known problems
Optimizers that work without gradients (evolution strategies, finite differences) do change the weights,
so they are not reported.

## References
- PyTorch tutorials, Optimizing model parameters: the optimization loop.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.loop_facts import letters, optimizer_uses, orders, share_of_steps
from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.checks.trainings import PHASE
from clew.checks.wording import too_few
from clew.records import signals
from clew.records.finding import Evidence, Finding, Severity

CLEARED = re.compile(r"b[^bs]*z[^bs]*s")


@dataclass(frozen=True)
class MissingBackward(Check):
    id = "LOOP001"
    name = "missing-backward"
    needs = (
        signals.GRAD_NORM,
        signals.GRAD_PRESENT,
    )
    scope = PHASE

    groups = ("loop-faults",)

    least: int = 5  # optimizer steps without a gradient; one or two may be a test run before the loop
    sustained: float = 0.9  # share of the steps that have the same order of events

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        norms = dict(run.series(signals.GRAD_NORM))
        for site, present in run.series(signals.GRAD_PRESENT):
            norm = norms.get(site)
            if norm is None or len(norm) < self.least or norm.max != 0.0:
                continue
            with_backward = share_of_steps(run, lambda pattern: "b" in pattern)
            if with_backward <= 1 - self.sustained and present.max == 0.0 and _nothing_moves(run):
                yield self._never(run, norm)
            elif share_of_steps(run, _is_cleared) >= self.sustained:
                yield self._cleared_too_early(norm)

    def _never(self, run: RunView, norm: Series) -> Finding:
        return self.finding(
            Severity.ERROR,
            message=f"backward() is never called: all {len(norm)} optimizer steps find no gradient and "
            "change nothing",
            fix="loss.backward()  # before optimizer.step()",
            site=norm.site,
            step=int(norm.steps[0]),
            evidence=[
                norm.evidence("gradient norm at the optimizer step"),
                Evidence(f"order of events in a step: {orders(run)[0].pattern or 'only step()'}"),
            ],
        )

    def _cleared_too_early(self, norm: Series) -> Finding:
        return self.finding(
            Severity.ERROR,
            message="zero_grad() comes between backward() and step(): the gradients are cleared before the "
            f"optimizer uses them, in all {len(norm)} steps",
            fix="optimizer.zero_grad()  # before loss.backward(), not after it",
            site=norm.site,
            step=int(norm.steps[0]),
            evidence=norm.evidence("gradient norm at the optimizer step"),
        )

    def unjudged(self, run: RunView) -> str | None:
        return too_few(run.longest(signals.GRAD_NORM), self.least, "optimizer steps")


def _is_cleared(pattern: str) -> bool:
    return CLEARED.search(letters(pattern)) is not None


def _nothing_moves(run: RunView) -> bool:
    """Whether no weight changes: an optimizer that needs no gradients would change them."""
    uses = [use for use in optimizer_uses(run) if use.stepped and use.with_grad == 0]
    return not uses or any(not use.changed for use in uses)
