"""LOOP006 scheduler-before-optimizer

## What it detects
A scheduler whose `step()` comes before that of its optimizer, from the first step (or epoch) on.

## Why is this bad?
The first learning rate of the schedule is never used, and every later one comes a step or an epoch too
early: with a schedule that decays per epoch, the first epoch already trains at the second rate.

## How to fix
Call `scheduler.step()` after `optimizer.step()`: at the end of the batch or of the epoch.

## Known problems
Fast-forwarding a schedule when a run is resumed calls it several times before training and is not
reported; nor is a first step that a GradScaler skipped.

## References
- PyTorch docs, torch.optim: how to adjust learning rate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.loop_facts import optimizer_uses, schedulers
from clew.checks.run_view import RunView
from clew.records import signals
from clew.records.finding import Evidence, Finding, Severity
from clew.records.site import Site


@dataclass(frozen=True)
class SchedulerBeforeOptimizer(Check):
    id = "LOOP006"
    name = "scheduler-before-optimizer"
    needs = (signals.LR,)

    steps: int = 2  # of the scheduler; a single one before training may set the first rate on purpose

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        if any(use.unscaled for use in optimizer_uses(run)):
            return
        for known in schedulers(run):
            outer = not known.inner and known.kind != "ReduceLROnPlateau"
            if (
                outer
                and known.early == 1
                and known.optimizer is not None
                and (known.steps or 0) >= self.steps
            ):
                yield self.finding(
                    Severity.WARNING,
                    message=f"{known.kind} is stepped before the optimizer: the first learning rate of the "
                    "schedule is skipped, and each later one comes too early",
                    fix="scheduler.step()  # after optimizer.step(), at the end of the batch or epoch",
                    site=Site(op="scheduler", file=known.step_file, line=known.step_line),
                    step=0,
                    evidence=[
                        Evidence("scheduler.step() was called once before the first update"),
                        *(s.evidence("learning rate") for _, s in list(run.series(signals.LR))[:1]),
                    ],
                )
