"""Observes what costs a program time besides computing: loading, building tensors, evaluating.

One `Observer` looks on while a run is profiled. Evaluations are followed all the time, the rest in the
windows only (`start`, `stop`). `finish` writes what was seen as facts, before the `profile` fact, and the
checks in `checks/speed` judge it.
"""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from types import SimpleNamespace

from clew.hooks.entry.guard import Guard
from clew.hooks.entry.patches import Patches
from clew.hooks.steps.watcher import Watcher
from clew.labs.profiler.habits.built_tensors import BuiltTensors
from clew.labs.profiler.habits.dataset_storage import kept_data
from clew.labs.profiler.habits.deliveries import Deliveries
from clew.labs.profiler.habits.graphs_in_evaluation import GraphsInEvaluation
from clew.records.facts.profile_facts import KeptDataFact

PROBE = "observing"


class Observer:
    """Told when a window begins and ends; no method raises."""

    def __init__(self, watcher: Watcher, guard: Guard) -> None:
        self._watcher = watcher
        self._patches = Patches()  # of the open window
        self._whole_run = Patches()
        self._steps = 0  # in closed windows
        self._seconds = 0.0  # that these took
        self._began_at = 0.0
        self._began: int | None = None
        self._kept: list[KeptDataFact] | None = None
        self._built = BuiltTensors(watcher, guard)
        self._deliveries = Deliveries(watcher, guard)
        self._evaluations = GraphsInEvaluation(watcher)
        self._listener = SimpleNamespace(
            forward=guard.inner(PROBE, self._evaluations.forward),
            loss=lambda *_: None,
            backward=guard.inner(PROBE, self._evaluations.backward),
        )
        self.begin = guard.inner(PROBE, self._begin)
        self.start = guard.inner(PROBE, self._start)
        self.stop = guard.inner(PROBE, self._stop)
        self.finish = guard.inner(PROBE, self._finish)

    def _begin(self) -> None:
        """The run begins: listen to it."""
        self._watcher.observers.append(self._listener)
        self._deliveries.watch_starts(self._whole_run)
        self._evaluations.watch_gradients(self._whole_run)

    def _start(self) -> None:
        """A window begins."""
        if self._began is not None:
            return
        self._began, self._began_at = self._watcher.step, perf_counter()
        self._deliveries.watch(self._patches)
        if not self._watcher.models.compile_used:  # dynamo would compile anew
            self._built.watch(self._patches)
        if self._kept is None:
            self._kept = kept_data(self._watcher.feeding.objects)

    def _stop(self) -> None:
        """It is over: nothing of ours is left in torch."""
        self._patches.remove()
        if self._began is not None:
            self._steps += self._watcher.step - self._began
            self._seconds += perf_counter() - self._began_at
            self._deliveries.settle()
            self._began = None

    def _finish(self) -> None:
        """The run is over: write down what was seen."""
        self._stop()
        self._whole_run.remove()
        if self._listener in self._watcher.observers:
            self._watcher.observers.remove(self._listener)
        steps, sink, step = max(self._steps, 1), self._watcher.sink, self._watcher.step
        for loading in self._deliveries.facts(steps):
            loading.write(sink, step)
        for built in self._built.facts(steps):
            replace(built, step_seconds=self._seconds / steps).write(sink, step)
        for evaluation in self._evaluations.facts():
            evaluation.write(sink, step)
        for kept in self._kept or ():
            kept.write(sink, step)
