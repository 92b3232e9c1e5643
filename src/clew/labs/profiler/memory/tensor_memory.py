"""Tensor memory during one step: how much at each moment, and the contents of the peak by module.

window = MemoryWindow(watcher.models, watcher.optimizers, find, courtesy)
window.start(step)        # between two steps
found = window.stop()     # between the next two: a TensorMemory, or None: see `window.note`
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn

from clew.hooks.collect_layers.trained_models import ModelBook, Root
from clew.hooks.collect_loop.optimizers import OptimizerBook
from clew.labs.profiler.memory.allocations import (
    BACKWARD_PHASE,
    FORWARD_PHASE,
    Allocation,
    AllocationTrace,
    ForwardSpan,
    outermost,
    read_trace,
)
from clew.labs.profiler.memory.live_tensors import Holdings, holdings
from clew.labs.profiler.torch_trace.kineto_window import THEIRS, Courtesy, activities
from clew.labs.profiler.torch_trace.module_scopes import Scopes
from clew.labs.profiler.torch_trace.profiler_stderr import QuietAllocator, quiet_start
from clew.labs.profiler.torch_trace.trace_ranges import profiler_is_on
from clew.records.step_costs import KINDS, FlameFrame

MOST_POINTS = 400  # of the timeline


@dataclass(frozen=True)
class ModuleMemory:
    """What the forwards of a module left for the backward, and how much more there was while they ran."""

    activations: int = 0
    peak: int = 0


@dataclass(frozen=True)
class TensorMemory:
    """One step."""

    step: int
    peak: int
    kinds: Mapping[str, int]
    timeline: tuple[tuple[float, int], ...]
    root: FlameFrame
    modules: Mapping[tuple[str, str], ModuleMemory] = field(default_factory=dict)  # by root and path


class MemoryWindow:
    """Records one step with torch's profiler; everything is called on the training thread."""

    def __init__(
        self,
        models: ModelBook,
        optimizers: OptimizerBook,
        find: Callable[[nn.Module], Root | None],
        courtesy: Courtesy,
    ) -> None:
        self.note: str | None = None
        self._models = models
        self._optimizers = optimizers
        self._courtesy = courtesy
        self._scopes = Scopes(models, find, self._overflow)
        self._profiler: Any = None
        self._open = False
        self._step = 0
        self._before = Holdings()
        self._quiet = QuietAllocator()

    def start(self, step: int) -> None:
        """Begin with this step, unless the program has a profiler of its own."""
        if self._courtesy.theirs or profiler_is_on():
            self.note = THEIRS.format("its memory is")
            return
        if not self._quiet.possible and not torch.cuda.is_available():
            self.note = "tensor memory was not recorded: this version of torch would print warnings"
            return
        self._step = step
        self._before = holdings(self._models, self._optimizers, everything=True)
        self._profiler = torch.profiler.profile(activities=activities(), profile_memory=True)
        self._courtesy.mine = True
        try:
            self._scopes.install()
            self._quiet.begin()
            with quiet_start():
                self._profiler.start()
            self._open = True
        except BaseException:
            self._scopes.remove()
            self._quiet.end()
            raise
        finally:
            self._courtesy.mine = False
        self._courtesy.give_way = self._give_way

    def stop(self) -> TensorMemory | None:
        """The step has ended: what was seen of it."""
        whole = self._open
        self._close()
        if not whole or self._profiler is None or self._profiler.profiler is None:
            return None
        after = holdings(self._models, self._optimizers, everything=True)
        results = self._profiler.profiler.kineto_results
        self._profiler = None
        tree = results.experimental_event_tree() if results is not None else []
        trace = read_trace(tree, self._before.device)
        return split(trace, self._step, self._before, after, self._scopes.table)

    def _close(self) -> None:
        if not self._open:
            return
        self._open = False
        self._courtesy.give_way = None
        self._scopes.remove()
        self._courtesy.mine = True
        try:
            self._profiler.stop()
        finally:
            self._quiet.end()
            self._courtesy.mine = False

    def _give_way(self) -> None:
        self._end_early(THEIRS.format("its memory is"))

    def _overflow(self) -> None:
        self._end_early("the memory of a step was not recorded: the step was too long (an evaluation?)")

    def _end_early(self, note: str) -> None:
        self.note = note
        try:
            self._close()
        except Exception as error:  # noqa: BLE001 - called in the midst of the user's own code
            self.note = f"the memory of a step could not be recorded: {type(error).__name__}: {error}"


# -- what it was for --


@dataclass(frozen=True)
class _Piece:
    """Memory of one kind in one module, from when to when."""

    size: int
    born: float
    died: float
    kind: str
    where: tuple[str, str]


def split(
    trace: AllocationTrace, step: int, before: Holdings, after: Holdings, table: Mapping[str, Any]
) -> TensorMemory:
    """Sort all memory of the step by kind and module, and find the moment with the most of it."""
    forwards = outermost(trace.modules, table)
    pieces = [*_older(trace, before, after, forwards), *_newer(trace, after, forwards, table)]
    times, totals = _course(pieces)
    top = int(np.argmax(totals)) if len(totals) else 0
    moment = float(times[top]) if len(times) else 0.0
    there = [piece for piece in pieces if piece.born <= moment < piece.died]
    kinds = {kind: sum(p.size for p in there if p.kind == kind) for kind in KINDS}
    return TensorMemory(
        step=step,
        peak=int(totals[top]) if len(totals) else 0,
        kinds=kinds,
        timeline=_thinned(times, totals),
        root=_tree(there),
        modules=_by_module(trace, pieces, times, totals, table),
    )


def _older(
    trace: AllocationTrace, before: Holdings, after: Holdings, forwards: list[ForwardSpan]
) -> list[_Piece]:
    """What was there when the step began. On the CPU its end is not told: it is worked out.

    Gradients go when they are cleared; variables of the last step as this one's take their names.
    """
    ended: dict[int, float] = {}
    for address, _, time in trace.freed:
        ended.setdefault(address, time)
    for one in trace.born:  # where something new is, the old one has gone
        if one.address in before.held:
            ended[one.address] = min(ended.get(one.address, np.inf), one.born)
    cleared = min([*trace.clearings, *(span.began for span in trace.backwards)], default=0.0)
    renamed = forwards[0].ended if forwards else 0.0
    for address, held in before.held.items():
        if after.kind_of(address) != held.kind:
            gone = cleared if held.kind == "gradients" else renamed
            ended[address] = min(ended.get(address, np.inf), gone)
    return [
        _Piece(held.size, -1.0, ended.get(address, np.inf), held.kind, (held.root, held.module))
        for address, held in before.held.items()
    ]


def _newer(
    trace: AllocationTrace, after: Holdings, forwards: list[ForwardSpan], table: Mapping[str, Any]
) -> list[_Piece]:
    pieces = []
    for one in trace.born:
        kind, where = _judged(one, trace, after, forwards, table)
        pieces.append(_Piece(one.size, one.born, one.died, kind, where))
    return pieces


def _judged(
    one: Allocation,
    trace: AllocationTrace,
    after: Holdings,
    forwards: list[ForwardSpan],
    table: Mapping[str, Any],
) -> tuple[str, tuple[str, str]]:
    held = after.held.get(one.address) if one.died == np.inf else None
    if held is not None and held.kind != "other" and held.size <= one.size:
        return held.kind, (held.root, held.module)
    scope = table.get(one.scope)
    where = (scope.root, scope.path) if scope is not None else ("", "")
    return ("activations" if _kept(one, trace, forwards) else "other"), where


def _kept(one: Allocation, trace: AllocationTrace, forwards: list[ForwardSpan]) -> bool:
    """Made by a forward, or between it and the backward (a loss), and still there when that begins."""
    if one.phase == BACKWARD_PHASE or not forwards or one.born < forwards[0].began:
        return False
    backward = next((span for span in trace.backwards if span.began >= one.born), None)
    if backward is None:
        return False
    started = any(span.began <= one.born and span.ended <= backward.began for span in forwards)
    # Not what the loader brings between a backward and the next forward.
    since = max((span.ended for span in trace.backwards if span.ended <= one.born), default=0.0)
    behind = one.phase == FORWARD_PHASE or any(since <= span.began <= one.born for span in forwards)
    return started and behind and one.died > backward.began


def _course(pieces: list[_Piece]) -> tuple[Any, Any]:
    """The total at every moment at which it changes."""
    changes: dict[float, int] = defaultdict(int)
    for piece in pieces:
        changes[max(piece.born, 0.0)] += piece.size
        if piece.died != np.inf:
            changes[piece.died] -= piece.size
    times = sorted(changes)
    return np.array(times), np.cumsum([changes[time] for time in times])


def _thinned(times: Any, totals: Any) -> tuple[tuple[float, int], ...]:
    """At most MOST_POINTS of the course, the highest of each stretch."""
    chunk = max(-(-len(times) // MOST_POINTS), 1)
    picked = [start + int(np.argmax(totals[start : start + chunk])) for start in range(0, len(times), chunk)]
    return tuple((float(times[n]), int(totals[n])) for n in picked)


# -- by module --


def _by_module(
    trace: AllocationTrace, pieces: list[_Piece], times: Any, totals: Any, table: Mapping[str, Any]
) -> dict[tuple[str, str], ModuleMemory]:
    kept: dict[tuple[str, str], int] = defaultdict(int)
    for piece in pieces:
        if piece.kind == "activations":
            kept[piece.where] += piece.size
    peaks: dict[tuple[str, str], int] = defaultdict(int)
    moments = [float(time) for time in times]
    for span in trace.modules:
        scope = table.get(span.name)
        if scope is not None and moments:
            where = (scope.root, scope.path)
            peaks[where] = max(peaks[where], _above(span, moments, totals))
    return {where: ModuleMemory(kept[where], peaks[where]) for where in {*kept, *peaks}}


def _above(span: ForwardSpan, moments: list[float], totals: Any) -> int:
    """How much more there was during a range than at its beginning."""
    first = max(bisect_left(moments, span.began) - 1, 0)
    last = bisect_right(moments, span.ended)
    return int(np.max(totals[first:last], initial=totals[first]) - totals[first])


def _tree(pieces: list[_Piece]) -> FlameFrame:
    """Kinds, and in them the modules."""
    children = [_kind_frame(kind, [p for p in pieces if p.kind == kind]) for kind in KINDS]
    shown = tuple(child for child in children if child.value)
    return FlameFrame("tensors", float(sum(child.value for child in shown)), 0.0, children=shown)


def _kind_frame(kind: str, pieces: list[_Piece]) -> FlameFrame:
    several = len({piece.where[0] for piece in pieces if piece.where[0]}) > 1
    sizes: dict[tuple[str, ...], int] = defaultdict(int)
    for piece in pieces:
        root, path = piece.where
        parts = tuple(path.split(".")) if path else ()
        sizes[((root, *parts) if several and root else parts)] += piece.size
    return _branch(kind, (), sizes)


def _branch(name: str, prefix: tuple[str, ...], sizes: Mapping[tuple[str, ...], int]) -> FlameFrame:
    depth = len(prefix)
    inside = {key: size for key, size in sizes.items() if key[:depth] == prefix}
    names = dict.fromkeys(key[depth] for key in inside if len(key) > depth)
    children = tuple(_branch(one, (*prefix, one), inside) for one in names)
    own = inside.get(prefix, 0)
    value = own + sum(child.value for child in children)
    module = ".".join(prefix) if prefix else None
    return FlameFrame(name, float(value), float(own), module=module, children=children)
