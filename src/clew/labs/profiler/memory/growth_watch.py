"""Does memory grow from step to step, and which objects grow? Records the fact `growth`.

In an ordinary run the process's memory is read a few times a second; only if it clearly grows are the
program's objects surveyed, three times, some steps apart. In a profile they are surveyed in any case:
a list of losses with their graphs should be reported before it has filled the memory.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import asdict, replace
from time import perf_counter
from typing import Any, ClassVar

from clew.hooks.collect_layers.trained_models import unwrap
from clew.hooks.entry.guard import Guard
from clew.hooks.steps.watcher import Watcher
from clew.labs.profiler.memory.growth_owners import Owner, owner_of_growth
from clew.labs.profiler.memory.named_objects import ObjectSurvey, take_survey
from clew.labs.profiler.memory.process_memory import ProcessWatch, Slope, own_memory, steady_slope
from clew.labs.profiler.profile_windows import off_the_clock
from clew.records.facts.step_facts import GrowthFact
from clew.records.step_costs import Growth, ProcessMemory

PROBE = "growth"
EVERY = 0.25  # seconds between two readings of the process's memory
MOST_READINGS = 400
FIRST_FIT = 48  # readings before the line is first fitted
AGAIN = 1.3  # times as many before the next fit
CLEAR_RISE = 64 << 20  # bytes, in an ordinary run
CLEAR_SHARE = 0.05  # of the memory that the process has
WARM_UP = 5  # steps in which everything is created for the first time
APART = 8  # steps between two surveys, at least
SURVEYS = 3
ROUNDS = 3  # of surveys in one run
LATER = 4  # times the steps until the next round


class GrowthWatch:
    """Called as each step begins, on the training thread."""

    # Entered around all that takes time here: a trace marks it as Clew's own work.
    own_work: ClassVar[Callable[[], AbstractContextManager[Any]]] = nullcontext

    def __init__(self, watcher: Watcher, guard: Guard) -> None:
        self._watcher = watcher
        self._guard = guard
        self.growth: Growth | None = None
        self._processes: ProcessWatch | None = None  # only in a profile
        self._readings: list[tuple[int, float]] = []
        self._due = 0.0
        self._fit_at = FIRST_FIT
        self._slope: Slope | None = None
        self._surveys: list[ObjectSurvey] = []
        self._survey_at = sys.maxsize
        self._rounds = 0
        self._owner: Owner | None = None
        self._harmless = False
        self.step_begins = guard.inner(PROBE, self._step_begins)
        self.finish = guard.inner(PROBE, self._finish)

    def watch_closely(self) -> None:
        """This run is profiled."""
        self._processes = ProcessWatch()
        self._survey_at = WARM_UP

    def processes(self) -> tuple[ProcessMemory, ...]:
        """The readings of this process and its children."""
        return self._processes.found() if self._processes is not None else ()

    def _step_begins(self, step: int) -> None:
        now = perf_counter()
        if now >= self._due:
            self._due = now + EVERY
            with GrowthWatch.own_work():
                self._read(step)
        if step >= self._survey_at:
            with GrowthWatch.own_work():
                self._survey(step)

    def _read(self, step: int) -> None:
        if self._processes is not None:
            self._processes.read(step)
        self._readings.append((step, own_memory()))
        if len(self._readings) > MOST_READINGS:
            del self._readings[1::2]
            self._fit_at = MOST_READINGS // 2
        if len(self._readings) >= self._fit_at and self._survey_at == sys.maxsize:
            self._fit_at = min(int(len(self._readings) * AGAIN), MOST_READINGS)
            self._slope = self._fitted()
            if self._slope is not None and self._rounds < ROUNDS:
                self._survey_at = step + 1

    def _fitted(self) -> Slope | None:
        if self._processes is not None:
            return steady_slope(self._readings)
        return steady_slope(self._readings, CLEAR_RISE, CLEAR_SHARE)

    # -- owners --

    def _survey(self, step: int) -> None:
        with off_the_clock(self._watcher, self._guard):
            roots = [(root.name, root.module()) for root in self._watcher.models.roots]
            named = [(name, unwrap(module)) for name, module in roots if module is not None]
            last = len(self._surveys) == SURVEYS - 1
            self._surveys.append(take_survey(step, sys._getframe(1), named, keep=last))
            self._survey_at = step + APART
            if last:
                self._conclude(step)

    def _conclude(self, step: int) -> None:
        surveys, self._surveys = self._surveys, []
        self._rounds += 1
        self._slope = self._fitted() or self._slope
        rate = self._slope.rate if self._slope is not None else None
        datasets = [loader.dataset for loader in self._loaders()]
        blame = owner_of_growth(surveys, rate, _lengths(datasets))
        self._owner, self._harmless = blame.owner, blame.harmless
        if self._owner is not None:
            self._survey_at = sys.maxsize
            self._write(step)
        elif self._processes is not None and self._rounds < ROUNDS:
            self._survey_at = step * LATER
        else:
            self._survey_at = sys.maxsize

    def _loaders(self) -> list[Any]:
        loaders = [reference() for reference in self._watcher.feeding.objects.values()]
        return [loader for loader in loaders if loader is not None]

    # -- what is recorded --

    def _finish(self, step: int) -> None:
        """The run is over: the final slope."""
        self._surveys = []
        if len(self._readings) >= FIRST_FIT or self._processes is not None:
            self._slope = self._fitted() or self._slope
        if self._owner is not None or (self._slope is not None and self._outgrows_caches(self._slope)):
            self._write(step)

    def _outgrows_caches(self, slope: Slope) -> bool:
        """Growth without an owner: caches that are not visible are full after the first pass over the data.

        A profile takes some memory itself: only what is clear in an ordinary run counts.
        """
        clear = steady_slope(self._readings, CLEAR_RISE, CLEAR_SHARE) is not None
        longest = max(_lengths(self._loaders()), default=0)  # in batches
        return clear and not self._harmless and slope.first >= longest

    def _write(self, step: int) -> None:
        owner, slope = self._owner, self._slope
        growth, fact = Growth(0.0, ""), GrowthFact()
        if owner is not None:
            growth = Growth(owner.size, owner.sentence(), owner.file, owner.line, owner.rate, owner.kind)
            fact = replace(fact, name=owner.name, container=owner.container)
        if slope is not None:
            growth = replace(growth, slope=slope.rate)
            steps = (slope.first, slope.last)
            fact = replace(fact, measured=True, error=slope.error, rise=slope.rise, steps=steps)
        if growth != self.growth:
            self.growth = growth
            replace(fact, **asdict(growth)).write(self._watcher.sink, step)  # it has these fields too


def _lengths(things: Iterable[Any]) -> list[int]:
    """The lengths of loaders or datasets, from their own methods."""
    found = []
    for thing in things:
        with suppress(Exception):  # the user's code: it may not have one, or fail
            found.append(len(thing))
    return found
