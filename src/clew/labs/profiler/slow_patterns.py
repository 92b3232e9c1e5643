"""Observes what costs a program time besides computing: loading, building tensors, evaluating.

One `PatternObserver` is active while a run is profiled. Evaluations are tracked all the time, the rest in the
windows only (`start`, `stop`). `finish` writes the results as facts, before the `profile` fact; the checks in
`checks/perf` judge them.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.compiler import is_compiling

from clew.hooks.collect_layers.trained_models import Root
from clew.hooks.entry.guard import Guard
from clew.hooks.entry.patches import Patches
from clew.hooks.entry.user_line import USER, kind_of, user_line
from clew.hooks.steps.watcher import Watcher
from clew.labs.profiler.data_loading import PROBE, Deliveries, kept_data
from clew.measure.nested_tensors import tensors_in
from clew.records.facts.profile_facts import BuiltTensorsFact, EvaluationGraphFact, KeptDataFact


class PatternObserver:
    """Called when a window begins and ends; no method raises."""

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
        if not self._watcher.models.compile_used:  # dynamo would recompile
            self._built.watch(self._patches)
        if self._kept is None:
            self._kept = kept_data(self._watcher.seen_samples.objects)

    def _stop(self) -> None:
        """The window is over: remove all wrappers from torch."""
        self._patches.remove()
        if self._began is not None:
            self._steps += self._watcher.step - self._began
            self._seconds += perf_counter() - self._began_at
            self._deliveries.settle()
            self._began = None

    def _finish(self) -> None:
        """The run is over: write what was observed."""
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


# -- calls of `torch.tensor` on lists: the time they take, and the time they need to take --

FUNCTIONS = ("tensor", "as_tensor")
SMALL = 64  # elements up to which a list is fine
MOST_LINES = 64  # lines that are tracked separately
DEEPEST = 4  # lists inside lists


@dataclass
class BuildingLine:
    """All calls from one line of the program."""

    calls: int = 0
    seconds: float = 0.0
    elements: int = 0  # of the largest
    faster: float = 0.0  # seconds that the largest would have taken from one array
    slowest: float = 0.0  # seconds that it took


class BuiltTensors:
    """Times every call on a list, and once per line the same call on an array."""

    def __init__(self, watcher: Watcher, guard: Guard) -> None:
        self._watcher = watcher
        self._lines: dict[tuple[str, int, str, str], BuildingLine] = {}
        self._note = guard.inner(PROBE, self._noted)

    def watch(self, patches: Patches) -> None:
        for name in FUNCTIONS:
            patches.wrap(torch, name, self._wrapping(name))

    def _wrapping(self, name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        watcher, note = self._watcher, self._note

        def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                if is_compiling() or not args or not isinstance(args[0], (list, tuple)):
                    return original(*args, **kwargs)
                began = perf_counter()
                result = original(*args, **kwargs)
                seconds = perf_counter() - began
                if threading.get_ident() == watcher.thread:
                    caller = sys._getframe(1)
                    note(name, args[0], result, seconds, caller.f_code.co_filename, caller.f_lineno)
                return result

            return wrapper

        return wrap

    def _noted(self, name: str, given: Any, result: Tensor, seconds: float, file: str, number: int) -> None:
        kind = made_of(given)
        if kind is None or result.numel() < SMALL or kind_of(file) != USER:
            return
        key = (file, number, kind, name)
        if key not in self._lines and len(self._lines) >= MOST_LINES:
            return
        line = self._lines.setdefault(key, BuildingLine())
        line.calls += 1
        line.seconds += seconds
        if result.numel() > line.elements:
            line.elements, line.slowest = result.numel(), seconds
            line.faster = min(_from_array(given, result) for _ in range(2))

    def facts(self, steps: int) -> list[BuiltTensorsFact]:
        """Per step; the most expensive line first."""
        ordered = sorted(self._lines.items(), key=lambda item: -item[1].seconds)
        return [
            BuiltTensorsFact(
                file=file,
                line=number,
                of=kind,
                function=name,
                calls=line.calls / steps,
                seconds=line.seconds / steps,
                needed=line.seconds / steps * min(line.faster / max(line.slowest, 1e-9), 1.0),
                elements=line.elements,
            )
            for (file, number, kind, name), line in ordered
        ]


def made_of(given: Any) -> str | None:
    """`arrays` or `numbers`, based on the first items; None for anything else."""
    for _ in range(DEEPEST):
        if not given:
            return None
        first = given[0]
        if isinstance(first, np.ndarray) and first.ndim:
            return "arrays"
        if isinstance(first, (int, float, np.number)):
            return "numbers"
        if not isinstance(first, (list, tuple)):
            return None
        given = first
    return None


def _from_array(given: Any, result: Tensor) -> float:
    """Seconds for the same data from one array: stacked first, or kept as a tensor."""
    began = perf_counter()
    if made_of(given) == "arrays":
        torch.from_numpy(np.asarray(given)).to(result.dtype)
    else:
        result.detach().clone()
    return perf_counter() - began


# -- evaluation that builds graphs: eval-mode forwards with gradients enabled and no backward --

# A section of evaluation lasts from its first forward to the next forward in training mode. A backward or a
# call of `torch.autograd.grad` within it means that the graphs were wanted (adversarial examples, saliency).


@dataclass
class GraphSection:
    """Where an evaluation runs its model."""

    file: str | None
    line: int | None
    began: float
    wanted: bool = False  # gradients were requested


@dataclass
class _GraphTotal:
    sections: int = 0
    seconds: float = 0.0
    wanted: int = 0


class GraphsInEvaluation:
    """Called at forwards with gradients and at backwards, throughout the run."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self._open: dict[int, GraphSection] = {}
        self._totals: dict[tuple[str, str | None, int | None], _GraphTotal] = {}
        self._began = perf_counter()

    def watch_gradients(self, patches: Patches) -> None:
        """`torch.autograd.grad` needs the graph as much as a backward does."""

        def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                self.backward()
                return original(*args, **kwargs)

            return wrapper

        patches.wrap(torch.autograd, "grad", wrap)

    def forward(self, root: Root, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        """A root ran with gradients enabled."""
        if module.training:
            self._close(root)
        elif root.index not in self._open and root.trains_in_train_mode and _has_graph(output):
            self._open[root.index] = GraphSection(*user_line(), perf_counter())

    def backward(self, *_: Any) -> None:
        """Anything evaluated since the last forward in training mode may be for this backward."""
        for section in self._open.values():
            section.wanted = True

    def _close(self, root: Root, ended: float | None = None) -> None:
        section = self._open.pop(root.index, None)
        if section is not None:
            total = self._totals.setdefault((root.name, section.file, section.line), _GraphTotal())
            total.sections += 1
            total.wanted += section.wanted
            total.seconds += (perf_counter() if ended is None else ended) - section.began

    def facts(self) -> list[EvaluationGraphFact]:
        """Sections without a request for gradients. One that is still open ended some time ago: it counts
        as no time."""
        for root in self._watcher.models.roots:
            section = self._open.get(root.index)
            self._close(root, section.began if section is not None else None)
        run = perf_counter() - self._began
        return [
            EvaluationGraphFact(root, file, line, total.sections, total.seconds, run)
            for (root, file, line), total in self._totals.items()
            if not total.wanted
        ]


def _has_graph(output: Any) -> bool:
    return any(t.grad_fn is not None for t in tensors_in(output))
