"""Tensor memory during one step: how much at each moment, and the contents of the peak by module.

The trace of torch's profiler has the allocations and frees of the step. What was alive before and after it
says what they were for.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np
from torch._C._profiler import _EventType

from clew.labs.profiler.torch_trace.torch_events import BACKWARD, MODULE, OWN
from clew.records.step_costs import KINDS, FlameFrame

MOST_POINTS = 400  # of the timeline
STAND_INS = "torch._subclasses"  # a compiler's tensors without memory; reading their address warns
_CLEARING = "Optimizer.zero_grad#"
FORWARD_PHASE, BACKWARD_PHASE, OUTSIDE = "forward", "backward", "outside"


@dataclass(frozen=True)
class ModuleMemory:
    """What a module's forwards saved for the backward, and how much more there was while they ran."""

    activations: int = 0
    peak: int = 0


@dataclass(frozen=True)
class TensorMemory:
    """One step."""

    peak: int
    kinds: Mapping[str, int]
    timeline: tuple[tuple[float, int], ...]
    root: FlameFrame
    modules: Mapping[tuple[str, str], ModuleMemory] = field(default_factory=dict)  # by root and path


@dataclass(frozen=True)
class LiveTensor:
    """A storage: its size, what it is, and the module that it belongs to."""

    size: int
    kind: str  # one of step_costs.KINDS
    root: str = ""
    module: str = ""


@dataclass
class LiveTensors:
    """By the address of the storage; shared storage counts once."""

    device: str = "cpu"
    storages: dict[int, LiveTensor] = field(default_factory=dict)

    def add(self, tensor: Any, kind: str, root: str = "", module: str = "") -> None:
        """Add a tensor's storage, unless it is known or on another device."""
        if type(tensor).__module__.startswith(STAND_INS):
            return
        try:
            if tensor.device.type != self.device:
                return
            storage = tensor.untyped_storage()
            address, size = storage.data_ptr(), storage.nbytes()
        except (RuntimeError, NotImplementedError, TypeError, AttributeError):
            return  # without storage: from a functorch transform
        if address and size:
            self.storages.setdefault(address, LiveTensor(size, kind, root, module))

    def kind_of(self, address: int) -> str:
        known = self.storages.get(address)
        return known.kind if known is not None else ""


# -- what was allocated --


@dataclass
class Allocation:
    """A piece of memory and its lifetime, in seconds of the step."""

    address: int
    size: int
    born: float
    died: float = inf
    scope: str = ""  # the range of the module whose forward allocated it
    phase: str = OUTSIDE


@dataclass(frozen=True)
class TraceRange:
    """A range of the trace."""

    name: str
    began: float
    ended: float


@dataclass
class AllocationTrace:
    """One step: its allocations, the earlier memory it freed, and the ranges it passed through."""

    born: list[Allocation] = field(default_factory=list)
    freed: dict[int, float] = field(default_factory=dict)  # of before: when, by address
    modules: list[TraceRange] = field(default_factory=list)
    backwards: list[TraceRange] = field(default_factory=list)
    clearings: list[float] = field(default_factory=list)  # when an optimizer's zero_grad returned


def read_trace(tree: Iterable[Any], device: str) -> AllocationTrace:
    """From torch's tree of events; only memory of this device type counts."""
    trace = AllocationTrace()
    changes: list[Allocation] = []  # a free has a negative size
    nodes = list(tree)
    start = min((node.start_time_ns for node in nodes), default=0)
    for node, scope, phase in _walk(nodes):
        began = (node.start_time_ns - start) / 1e9
        if node.tag == _EventType.Allocation:
            fields = node.extra_fields
            if fields.device.type == device and fields.ptr:
                changes.append(Allocation(fields.ptr, fields.alloc_size, began, inf, scope, phase))
        else:
            _note_range(trace, node, began, (node.end_time_ns - start) / 1e9)
    _pair(trace, sorted(changes, key=lambda one: one.born))
    return trace


def _walk(nodes: list[Any]) -> Iterator[tuple[Any, str, str]]:
    """Every event except Clew's own, with its module and phase."""
    waiting = [(node, "", OUTSIDE) for node in reversed(nodes)]
    while waiting:
        node, scope, phase = waiting.pop()
        name = node.name
        if name == OWN:
            continue
        yield node, scope, phase
        if name.startswith(MODULE):
            scope, phase = name, FORWARD_PHASE if phase != BACKWARD_PHASE else phase
        elif name == BACKWARD:
            scope, phase = "", BACKWARD_PHASE
        waiting += [(child, scope, phase) for child in reversed(node.children)]


def _note_range(trace: AllocationTrace, node: Any, began: float, ended: float) -> None:
    if node.name.startswith(MODULE):
        trace.modules.append(TraceRange(node.name, began, ended))
    elif node.name == BACKWARD:
        trace.backwards.append(TraceRange(node.name, began, ended))
    elif node.name.startswith(_CLEARING):
        trace.clearings.append(ended)


def _pair(trace: AllocationTrace, changes: list[Allocation]) -> None:
    """A free ends the allocation at its address; frees of earlier memory are kept separate."""
    alive: dict[int, Allocation] = {}
    for one in changes:
        if one.size > 0:
            trace.born.append(one)
            alive[one.address] = one
        elif one.address in alive:
            alive.pop(one.address).died = one.born
        else:
            trace.freed.setdefault(one.address, one.born)


def outermost(spans: list[TraceRange], table: Mapping[str, Any]) -> list[TraceRange]:
    """The calls of whole models: ranges of modules that train and are inside no other."""
    found: list[TraceRange] = []
    for span in sorted(spans, key=lambda one: (one.began, -one.ended)):
        scope = table.get(span.name)
        trains = scope is None or scope.trains
        if trains and (not found or span.began >= found[-1].ended):
            found.append(span)
    return found


# -- what it was for --


@dataclass(frozen=True)
class _Piece:
    """Memory of one kind in one module, with its lifetime."""

    size: int
    born: float
    died: float
    kind: str
    where: tuple[str, str]


def split(
    trace: AllocationTrace, before: LiveTensors, after: LiveTensors, table: Mapping[str, Any]
) -> TensorMemory:
    """Sort all memory of the step by kind and module, and find the peak."""
    forwards = outermost(trace.modules, table)
    pieces = _older(trace, before, after, forwards)
    for one in trace.born:
        kind, where = _purpose(one, after, table)
        kind = kind or ("activations" if _saved(one, trace, forwards) else "other")
        pieces.append(_Piece(one.size, one.born, one.died, kind, where))
    times, totals = _course(pieces)
    top = int(np.argmax(totals)) if len(totals) else 0
    moment = float(times[top]) if len(times) else 0.0
    there = [piece for piece in pieces if piece.born <= moment < piece.died]
    return TensorMemory(
        peak=int(totals[top]) if len(totals) else 0,
        kinds={kind: sum(p.size for p in there if p.kind == kind) for kind in KINDS},
        timeline=_thinned(times, totals),
        root=_tree(there),
        modules=_by_module(trace, pieces, times, totals, table),
    )


def _older(
    trace: AllocationTrace, before: LiveTensors, after: LiveTensors, forwards: list[TraceRange]
) -> list[_Piece]:
    """Memory that existed when the step began. On the CPU its end is not reported, so it is derived.

    Gradients end when they are cleared; variables of the last step when this step reassigns their names.
    """
    ended = dict(trace.freed)
    for one in trace.born:  # a new allocation at the address means the old one is gone
        if one.address in before.storages:
            ended[one.address] = min(ended.get(one.address, inf), one.born)
    cleared = min([*trace.clearings, *(span.began for span in trace.backwards)], default=0.0)
    renamed = forwards[0].ended if forwards else 0.0
    for address, live in before.storages.items():
        if after.kind_of(address) != live.kind:
            gone = cleared if live.kind == "gradients" else renamed
            ended[address] = min(ended.get(address, inf), gone)
    return [
        _Piece(live.size, -1.0, ended.get(address, inf), live.kind, (live.root, live.module))
        for address, live in before.storages.items()
    ]


def _purpose(one: Allocation, after: LiveTensors, table: Mapping[str, Any]) -> tuple[str, tuple[str, str]]:
    """The kind, if the memory is part of something known after the step, and the module."""
    live = after.storages.get(one.address) if one.died == inf else None
    if live is not None and live.kind != "other" and live.size <= one.size:
        return live.kind, (live.root, live.module)
    scope = table.get(one.scope)
    return "", (scope.root, scope.path) if scope is not None else ("", "")


def _saved(one: Allocation, trace: AllocationTrace, forwards: list[TraceRange]) -> bool:
    """Allocated by a forward, or between it and the backward (a loss), and still alive when that begins."""
    if one.phase == BACKWARD_PHASE or not forwards or one.born < forwards[0].began:
        return False
    backward = next((span for span in trace.backwards if span.began >= one.born), None)
    if backward is None:
        return False
    started = any(span.began <= one.born and span.ended <= backward.began for span in forwards)
    # Not what the loader delivers between a backward and the next forward.
    since = max((span.ended for span in trace.backwards if span.ended <= one.born), default=0.0)
    behind = one.phase == FORWARD_PHASE or any(since <= span.began <= one.born for span in forwards)
    return started and behind and one.died > backward.began


def _course(pieces: list[_Piece]) -> tuple[Any, Any]:
    """The total at every moment at which it changes."""
    changes: dict[float, int] = defaultdict(int)
    for piece in pieces:
        changes[max(piece.born, 0.0)] += piece.size
        if piece.died != inf:
            changes[piece.died] -= piece.size
    times = sorted(changes)
    return np.array(times), np.cumsum([changes[time] for time in times])


def _thinned(times: Any, totals: Any) -> tuple[tuple[float, int], ...]:
    """At most MOST_POINTS of the course, the maximum of each stretch."""
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


def _above(span: TraceRange, moments: list[float], totals: Any) -> int:
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
