"""Torch's raw events as plain rows, sorted by start time, and the named ranges that Clew adds to them."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch

# The names of the ranges, also visible in a trace viewer.
STEP = "clew: step "  # and its number: an instant at which it begins
BACKWARD = "clew: backward"
OWN = "clew: own work"
MODULE = "module: "  # and its name

_fast: Any = getattr(getattr(torch._C, "_profiler", None), "_RecordFunctionFast", None)


def named(name: str) -> AbstractContextManager[Any]:
    """A range of that name, in the cheapest form this torch has."""
    made: AbstractContextManager[Any] = (
        _fast(name) if _fast is not None else torch.autograd.profiler.record_function(name)
    )
    return made


def profiler_is_on() -> bool:
    """Whether a torch profiler is recording this thread now."""
    asked = getattr(torch.autograd, "_profiler_enabled", None)
    return bool(asked()) if asked is not None else False


STEP_MARK, SCOPE, OP, NODE, OPTIMIZER, DATA, ENGINE, OURS, OTHER = range(9)
_NODE = "autograd::engine::evaluate_function: "
_COMPILED = "Torch-Compiled Region"
_USER_SCOPE = 7  # of a range named by the program, or by torch's own Python code


@dataclass(slots=True)
class TraceEvent:
    """One event; times in nanoseconds."""

    name: str
    kind: int
    start: int
    end: int
    thread: int
    sequence: int  # links an op with its node in the backward; -1: none
    forward_thread: int
    event: Any  # torch's own event: shapes and so on are read when needed

    @property
    def duration(self) -> int:
        return self.end - self.start


def rows_of(events: Iterable[Any]) -> list[TraceEvent]:
    """The host's events, without memory events; an enclosing event comes first."""
    rows = []
    for event in events:
        if str(event.device_type()) != "DeviceType.CPU":
            continue
        name = event.name()
        if name == "[memory]" or event.is_async():
            continue
        start = event.start_ns()
        rows.append(
            TraceEvent(
                name,
                kind_of(name, event),
                start,
                start + event.duration_ns(),
                event.start_thread_id(),
                event.sequence_nr(),
                event.fwd_thread_id(),
                event,
            )
        )
    rows.sort(key=lambda row: (row.start, -row.end))
    return rows


def device_copies(events: Iterable[Any]) -> list[tuple[int, int]]:
    """Start and duration of copies from the host's memory to an accelerator's."""
    return [
        (event.start_ns(), event.duration_ns())
        for event in events
        if str(event.device_type()) != "DeviceType.CPU" and event.name().startswith("Memcpy HtoD")
    ]


def kind_of(name: str, event: Any) -> int:
    """What an event represents."""
    if name.startswith("aten::"):
        return OP
    for prefix, kind in _PREFIXES:
        if name.startswith(prefix):
            return kind
    return OTHER if event.scope() == _USER_SCOPE or event.is_user_annotation() else OP


_PREFIXES = (
    (MODULE, SCOPE),
    (_NODE, NODE),
    (STEP, STEP_MARK),
    (BACKWARD, ENGINE),
    (OWN, OURS),
    (_COMPILED, SCOPE),
    ("Optimizer.step#", OPTIMIZER),
    ("enumerate(DataLoader)#", DATA),
    ("Optimizer.zero_grad#", OTHER),
    ("ProfilerStep#", OTHER),
)


def node_name(row: TraceEvent) -> str:
    """`AddmmBackward0` of a node that the engine evaluates."""
    return row.name.removeprefix(_NODE).removeprefix("torch::autograd::")
