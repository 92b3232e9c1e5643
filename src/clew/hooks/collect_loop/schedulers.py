"""Learning-rate schedulers: their optimizers, how often they were stepped, and whether too early."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

from clew.hooks.collect_loop.optimizers import OptimizerBook
from clew.hooks.entry.sink import Sink
from clew.hooks.entry.user_line import line_of_creation, user_line
from clew.records.facts.step_facts import SchedulerFact


@dataclass
class KnownScheduler:
    """A scheduler, by weak reference."""

    scheduler: weakref.ref[Any]
    kind: str
    file: str | None
    line: int | None
    step_file: str | None = None
    step_line: int | None = None
    early: int = 0  # steps before the first step of its optimizer
    inner: bool = False  # stepped by another scheduler
    steps: int | None = None  # steps by hand, when last read
    since: int = 0  # light steps counted since then
    owner: int | None = None  # number of its optimizer
    last: SchedulerFact | None = None  # the last fact written

    def read(self, scheduler: Any, owner: int | None) -> None:
        """Read what only a live scheduler knows: that of a cross-validation fold is freed with the fold."""
        self.steps, self.since = steps_of(scheduler), 0
        self.owner = owner if owner is not None else self.owner

    def bury(self) -> None:
        """The scheduler was freed: use what was counted since, if its optimizer is known."""
        self.steps = self.steps + self.since if self.steps is not None and self.owner is not None else None
        self.since = 0


class Schedulers:
    """All schedulers that were created, with a fact for each."""

    def __init__(self, sink: Sink, optimizers: OptimizerBook) -> None:
        self._sink = sink
        self._optimizers = optimizers
        self._known: dict[int, KnownScheduler] = {}
        self._order: list[KnownScheduler] = []

    def made(self, scheduler: Any) -> None:
        """A scheduler's `__init__` returned; its base class's may have returned before."""
        known = self._find(scheduler)
        if known is None:
            file, line = line_of_creation(scheduler)
            known = KnownScheduler(weakref.ref(scheduler), type(scheduler).__name__, file, line)
            self._known[id(scheduler)] = known
            self._order.append(known)
        for inner in getattr(scheduler, "_schedulers", ()):
            part = self._find(inner)
            if part is not None:
                part.inner = True

    def stepped(self, scheduler: Any) -> None:
        """`scheduler.step()` returned; recorded at least until its optimizer has stepped."""
        known = self._find(scheduler)
        if known is None:
            return
        if known.step_file is None:
            known.step_file, known.step_line = user_line()
        optimizer = getattr(scheduler, "optimizer", None)
        if not self._steps_of(optimizer):
            known.early += 1
        known.read(scheduler, self._number_of(optimizer))

    def count(self, scheduler: Any) -> None:
        """Same as `stepped` on a light step, where only the count is kept."""
        known = self._known.get(id(scheduler))
        if known is not None:
            known.since += 1

    def _find(self, scheduler: Any) -> KnownScheduler | None:
        known = self._known.get(id(scheduler))
        return known if known is not None and known.scheduler() is scheduler else None

    def _steps_of(self, optimizer: Any) -> int:
        return next((s.steps for s in self._optimizers.states if s.optimizer() is optimizer), 0)

    def _number_of(self, optimizer: Any) -> int | None:
        return next((s.index for s in self._optimizers.states if s.optimizer() is optimizer), None)

    def report(self, step: int) -> None:
        """Write the facts that have changed, also of schedulers that no longer exist."""
        for index, known in enumerate(self._order):
            scheduler = known.scheduler()
            if scheduler is not None:
                known.read(scheduler, self._number_of(getattr(scheduler, "optimizer", None)))
            else:
                known.bury()
            fact = self._fact(index, known)
            if fact != known.last:
                known.last = fact
                fact.write(self._sink, step)

    def _fact(self, index: int, known: KnownScheduler) -> SchedulerFact:
        return SchedulerFact(
            index=index,
            kind=known.kind,
            file=known.file,
            line=known.line,
            step_file=known.step_file,
            step_line=known.step_line,
            steps=known.steps,
            early=known.early,
            inner=known.inner,
            optimizer=known.owner,
        )


def steps_of(scheduler: Any) -> int | None:
    """How often a scheduler was stepped by hand; its own first step in `__init__` does not count."""
    count, last = getattr(scheduler, "_step_count", None), getattr(scheduler, "last_epoch", None)
    known = [count - 1] if isinstance(count, int) else []
    known += [last] if isinstance(last, int) else []
    return max(0, *known) if known else None
