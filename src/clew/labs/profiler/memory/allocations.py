"""The allocations and frees that torch's profiler recorded in one step, by the module they happened in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any

from torch._C._profiler import _EventType

from clew.labs.profiler.torch_trace.trace_ranges import BACKWARD, MODULE, OWN

_CLEARING = "Optimizer.zero_grad#"
FORWARD_PHASE, BACKWARD_PHASE, OUTSIDE = "forward", "backward", "outside"


@dataclass
class Allocation:
    """A piece of memory and the time that it lived, in seconds of the step."""

    address: int
    size: int
    born: float
    died: float = inf
    scope: str = ""  # the range of the module whose forward allocated it
    phase: str = OUTSIDE


@dataclass(frozen=True)
class ForwardSpan:
    """A range of the trace."""

    name: str
    began: float
    ended: float


@dataclass
class AllocationTrace:
    """One step: what was allocated in it, what of before it was freed, and the ranges it went through."""

    born: list[Allocation] = field(default_factory=list)
    freed: list[tuple[int, int, float]] = field(default_factory=list)  # of before: address, size, when
    modules: list[ForwardSpan] = field(default_factory=list)
    backwards: list[ForwardSpan] = field(default_factory=list)
    clearings: list[float] = field(default_factory=list)  # when an optimizer's zero_grad returned
    seconds: float = 0.0


@dataclass(frozen=True)
class _Happening:
    time: float
    address: int
    size: int
    scope: str
    phase: str


def read_trace(tree: Iterable[Any], device: str) -> AllocationTrace:
    """From torch's tree of events; only memory of this type of device counts."""
    trace = AllocationTrace()
    happenings: list[_Happening] = []
    nodes = list(tree)
    start = min((node.start_time_ns for node in nodes), default=0)
    for node, scope, phase in _walk(nodes):
        began = (node.start_time_ns - start) / 1e9
        if node.tag == _EventType.Allocation:
            fields = node.extra_fields
            if fields.device.type == device and fields.ptr:
                happenings.append(_Happening(began, fields.ptr, fields.alloc_size, scope, phase))
        else:
            _note_range(trace, node, began, (node.end_time_ns - start) / 1e9)
    happenings.sort(key=lambda one: one.time)
    _pair(trace, happenings)
    ends = [span.ended for span in (*trace.modules, *trace.backwards)]
    trace.seconds = max([one.time for one in happenings] + ends, default=0.0)
    return trace


def _walk(nodes: list[Any]) -> Iterator[tuple[Any, str, str]]:
    """Every event but those of Clew's own work, with the module and the phase that it happened in."""
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
        trace.modules.append(ForwardSpan(node.name, began, ended))
    elif node.name == BACKWARD:
        trace.backwards.append(ForwardSpan(node.name, began, ended))
    elif node.name.startswith(_CLEARING):
        trace.clearings.append(ended)


def _pair(trace: AllocationTrace, happenings: list[_Happening]) -> None:
    """Frees end what was allocated at their address; those of older memory are kept apart."""
    alive: dict[int, Allocation] = {}
    for one in happenings:
        if one.size > 0:
            made = Allocation(one.address, one.size, one.time, inf, one.scope, one.phase)
            trace.born.append(made)
            alive[one.address] = made
        elif one.address in alive:
            alive.pop(one.address).died = one.time
        else:
            trace.freed.append((one.address, -one.size, one.time))


def outermost(spans: list[ForwardSpan], table: Mapping[str, Any]) -> list[ForwardSpan]:
    """The calls of whole models: ranges of modules that train and are inside no other."""
    found: list[ForwardSpan] = []
    for span in sorted(spans, key=lambda one: (one.began, -one.ended)):
        scope = table.get(span.name)
        trains = scope is None or scope.trains
        if trains and (not found or span.began >= found[-1].ended):
            found.append(span)
    return found
