"""Does memory grow from step to step, and which objects grow? Records the fact `growth`.

In an ordinary run the process's memory is read a few times a second; only if it grows clearly is the
program looked through, three times some steps apart. In a profile (`closely`) it is looked through in
any case: a list of losses with their graphs is worth a word before it has filled the memory.
"""

from __future__ import annotations

import sys
from time import perf_counter
from typing import TYPE_CHECKING, Any

from clew.hooks.collect_layers.trained_models import unwrap
from clew.hooks.entry.guard import Guard
from clew.hooks.steps.watcher import Watcher
from clew.labs.profiler.memory.growth_owners import Owner, owner_of_growth
from clew.labs.profiler.memory.growth_slope import Slope, steady_slope
from clew.labs.profiler.memory.named_objects import ObjectSurvey, take_survey
from clew.labs.profiler.memory.process_memory import own_memory
from clew.records.facts.step_facts import GrowthFact
from clew.records.step_costs import Growth, ProcessMemory

if TYPE_CHECKING:
    from clew.labs.profiler.memory.process_memory import ProcessWatch

PROBE = "growth"
EVERY = 0.25  # seconds between two readings of the process's memory
MOST_READINGS = 400
FIRST_LOOK = 48  # readings until the line through them is fitted for the first time
AGAIN = 1.3  # times as many until the next time
CLEAR_RISE = 64 << 20  # bytes, in an ordinary run
CLEAR_SHARE = 0.05  # of the memory that the process has
WARM_UP = 5  # steps in which everything is made for the first time
APART = 8  # steps between two surveys, at least
SURVEYS = 3
ROUNDS = 3  # of surveys in one run
LATER = 4  # times the steps until the next round


class GrowthWatch:
    """Told of steps as they begin, on the training thread."""

    def __init__(self, watcher: Watcher, guard: Guard) -> None:
        self._watcher = watcher
        self._guard = guard
        self.closely = False
        self.growth: Growth | None = None
        self._processes: ProcessWatch | None = None
        self._readings: list[tuple[int, float]] = []
        self._due = 0.0
        self._fit_at = FIRST_LOOK
        self._slope: Slope | None = None
        self._surveys: list[ObjectSurvey] = []
        self._survey_at = sys.maxsize
        self._rounds = 0
        self._owner: Owner | None = None
        self._harmless = False
        self.step_begins = guard.inner(PROBE, self._step_begins)
        self.finish = guard.inner(PROBE, self._finish)

    def look_closely(self) -> None:
        """This run is profiled."""
        from clew.labs.profiler.memory.process_memory import ProcessWatch

        self.closely = True
        self._processes = ProcessWatch()
        self._survey_at = WARM_UP

    def processes(self) -> tuple[ProcessMemory, ...]:
        """What was read of this process and its children."""
        return self._processes.found() if self._processes is not None else ()

    def _step_begins(self, step: int) -> None:
        now = perf_counter()
        if now >= self._due:
            self._due = now + EVERY
            self._read(step)
        if step >= self._survey_at:
            self._survey(step)

    def _read(self, step: int) -> None:
        if self._processes is not None:
            self._processes.look(step)
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
        if self.closely:
            return steady_slope(self._readings)
        return steady_slope(self._readings, CLEAR_RISE, CLEAR_SHARE)

    # -- who --

    def _survey(self, step: int) -> None:
        began = perf_counter()
        roots = [(root.name, root.module()) for root in self._watcher.models.roots]
        named = [(name, unwrap(module)) for name, module in roots if module is not None]
        last = len(self._surveys) == SURVEYS - 1
        self._surveys.append(take_survey(step, sys._getframe(1), named, keep=last))
        self._survey_at = step + APART
        if last:
            self._conclude(step)
        if not self._watcher.machine.light.telling:  # else a probe is around us, and books this in a moment
            self._guard.seconds -= perf_counter() - began
        self._watcher.clock.restart()  # what was done here belongs to no step

    def _conclude(self, step: int) -> None:
        surveys, self._surveys = self._surveys, []
        self._rounds += 1
        self._slope = self._fitted() or self._slope
        rate = self._slope.rate if self._slope is not None else None
        blame = owner_of_growth(surveys, rate, self._lengths())
        self._owner, self._harmless = blame.owner, blame.harmless
        if self._owner is not None:
            self._survey_at = sys.maxsize
            self._write(step)
        elif self.closely and self._rounds < ROUNDS:
            self._survey_at = step * LATER
        else:
            self._survey_at = sys.maxsize

    def _loaders(self) -> list[Any]:
        loaders = [reference() for reference in self._watcher.feeding.objects.values()]
        return [loader for loader in loaders if loader is not None]

    def _lengths(self) -> list[int]:
        found = [_length(loader.dataset) for loader in self._loaders()]
        return [length for length in found if length is not None]

    # -- what is said --

    def _finish(self, step: int) -> None:
        """The run is over: the last word on the slope."""
        self._surveys = []
        slope = self._fitted() if len(self._readings) >= FIRST_LOOK or self.closely else self._slope
        self._slope = slope or self._slope
        if self._owner is not None or (self._slope is not None and self._goes_on_and_on(self._slope)):
            self._write(step)

    def _goes_on_and_on(self, slope: Slope) -> bool:
        """Growth without an owner: caches that nobody sees are full after the first pass over the data.

        A profile takes some memory itself: only what is clear in an ordinary run counts.
        """
        clear = steady_slope(self._readings, CLEAR_RISE, CLEAR_SHARE) is not None
        return clear and not self._harmless and slope.first >= max(self._batches(), default=0)

    def _batches(self) -> list[int]:
        """Of the loaders, in one pass."""
        found = [_length(loader) for loader in self._loaders()]
        return [length for length in found if length is not None]

    def _write(self, step: int) -> None:
        owner, slope = self._owner, self._slope
        rate = slope.rate if slope is not None else owner.size if owner is not None else 0.0
        growth = Growth(
            slope=rate,
            owner=owner.sentence() if owner is not None else "",
            file=owner.file if owner is not None else None,
            line=owner.line if owner is not None else None,
            objects=owner.rate if owner is not None else 0.0,
            kind=owner.kind if owner is not None else "",
        )
        if growth != self.growth:
            self.growth = growth
            self._fact(growth).write(self._watcher.sink, step)

    def _fact(self, growth: Growth) -> GrowthFact:
        owner, slope = self._owner, self._slope
        return GrowthFact(
            slope=growth.slope,
            measured=slope is not None,
            error=slope.error if slope is not None else None,
            rise=slope.rise if slope is not None else None,
            steps=(slope.first, slope.last) if slope is not None else None,
            owner=growth.owner,
            name=owner.name if owner is not None else "",
            container=owner.container if owner is not None else "",
            file=growth.file,
            line=growth.line,
            kind=growth.kind,
            objects=growth.objects,
        )


def _length(thing: Any) -> int | None:
    """Of a loader or a dataset, whose own method is asked."""
    try:
        return len(thing)
    except Exception:  # noqa: BLE001 - the user's code: it may not have one, or fail
        return None
