"""LOOP007 scheduler-stuck

## What it detects
A learning rate that reaches (almost) zero long before the run ends and stays there; a scheduler that is
stepped but belongs to another optimizer than the one that trains; a scheduler that is created but never
stepped.

## Why is this bad?
With a rate of zero, the rest of the run learns nothing: usually a schedule counted in epochs is stepped
once per batch. A scheduler of another optimizer, or one that is never stepped, leaves the rate at its
first value, and the run does not follow the intended schedule.

## How to fix
Step the scheduler in the unit that its arguments count. Create the scheduler after, and from, the
optimizer that trains. Call `scheduler.step()`.

## Known problems
`ReduceLROnPlateau` lowers the rate when training has stalled, so a low rate is not reported for it. A
schedule that is flat on purpose is not reported.

## References
- PyTorch docs, torch.optim: how to adjust learning rate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from clew.checks.base import Check
from clew.checks.evidence.loop_facts import schedulers, share_of_steps
from clew.checks.run_view import RunView
from clew.checks.series import BoolArray, Series
from clew.checks.trainings import PHASE
from clew.checks.wording import too_few
from clew.records import signals
from clew.records.facts.step_facts import SchedulerFact
from clew.records.finding import Evidence, Finding, Severity
from clew.records.plural import counted
from clew.records.site import Site


@dataclass(frozen=True)
class SchedulerStuck(Check):
    id = "LOOP007"
    name = "scheduler-stuck"
    needs = (signals.LR,)
    scope = PHASE

    groups = ("rate-faults",)

    low: float = 1e-3  # of the highest rate; three tenfold decays, as usual, end at it
    low_share: float = 0.5  # of the run below that; usual schedules get there in the last tenth
    zero_share: float = 0.2  # of the run at exactly zero; a schedule ends at zero in its last steps
    least: int = 20  # steps in which nothing is learned, or in which a scheduler is not stepped
    per_batch: float = 0.8  # share of the steps with a scheduler step; with more, it is stepped per batch

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        known = [s for s in schedulers(run) if not s.inner]
        if not any(s.kind == "ReduceLROnPlateau" for s in known):
            for _, rate in run.series(signals.LR):
                yield from self._too_low(run, rate.finite(), known)
        for scheduler in known:
            yield from self._of_another(run, scheduler)
            yield from self._never_stepped(run, scheduler)

    def _too_low(self, run: RunView, rate: Series, known: list[SchedulerFact]) -> Iterator[Finding]:
        if len(rate) < self.least or rate.max <= 0.0:
            return
        zero = _trailing(rate.values == 0.0)
        low = _trailing(rate.values < self.low * rate.max * (1 - 1e-9))  # for rounding
        needed = max(self.least, self.low_share * len(rate))
        if zero < max(self.least, self.zero_share * len(rate)) and low < needed:
            return
        first = int(rate.steps[len(rate) - max(zero, low)])
        how_low = "0" if zero else f"{rate.last(max(low, 1)).max:.2g}"
        places = [Site(op="scheduler", file=s.step_file, line=s.step_line) for s in known if s.step_file]
        yield self.finding(
            Severity.WARNING,
            message=f"the learning rate falls from {rate.max:.3g} to {how_low} by step {first} and stays "
            f"there: {max(zero, low)} of {len(rate)} steps learn next to nothing",
            fix=self._fix(run, known),
            site=places[0] if places else rate.site,
            step=int(rate.steps[0]),  # the schedule was too short from its beginning
            evidence=[rate.evidence("learning rate"), *_schedule(known)],
        )

    def _fix(self, run: RunView, known: list[SchedulerFact]) -> str:
        if known and share_of_steps(run, lambda pattern: "h" in pattern) >= self.per_batch:
            return (
                "scheduler.step()  # after every epoch, not after every batch; or count its arguments in "
                "batches"
            )
        return "use a longer schedule: as many steps as the run has"

    def _of_another(self, run: RunView, known: SchedulerFact) -> Iterator[Finding]:
        if known.optimizer is None and (known.steps or 0) > 0 and run.steps >= self.least:
            yield self.finding(
                Severity.WARNING,
                message=f"{known.kind} is stepped, but its optimizer never steps: the "
                "learning rate of the optimizer that trains does not change",
                fix=f"scheduler = {known.kind}(optimizer, ...)  # after the optimizer is last created",
                site=Site(op="scheduler", file=known.file, line=known.line),
                step=0,
                evidence=[s.evidence("learning rate") for _, s in list(run.series(signals.LR))[:1]],
            )

    def _never_stepped(self, run: RunView, known: SchedulerFact) -> Iterator[Finding]:
        ended_well = run.finished and not run.events("exception") and not run.events("interrupt")
        used = known.optimizer is not None and run.steps >= self.least
        if ended_well and used and known.steps == 0:
            yield self.finding(
                Severity.WARNING,
                message=f"{known.kind} is created but never stepped: the learning rate stays at its "
                f"first value for all {run.steps} steps",
                fix="scheduler.step()  # after every epoch (or batch, if its arguments count batches)",
                site=Site(op="scheduler", file=known.file, line=known.line),
                step=0,
                evidence=[s.evidence("learning rate") for _, s in list(run.series(signals.LR))[:1]],
            )

    def unjudged(self, run: RunView) -> str | None:
        return too_few(run.longest(signals.LR), self.least, "optimizer steps")


def _trailing(hits: BoolArray) -> int:
    """How many are true in a row, up to the end."""
    return int(len(hits) if hits.all() else np.argmin(hits[::-1]))


def _schedule(known: list[SchedulerFact]) -> list[Evidence]:
    return [
        Evidence(
            f"{s.kind} created here, stepped {counted(s.steps, 'time')}", site=Site(file=s.file, line=s.line)
        )
        for s in known[:2]
        if s.steps is not None
    ]
