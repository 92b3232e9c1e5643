"""Torch's raw events as plain rows, sorted by start time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from clew.labs.profiler.torch_trace.trace_ranges import BACKWARD, MODULE, OWN, STEP

STEP_MARK, SCOPE, OP, NODE, OPTIMIZER, DATA, ENGINE, OURS, OTHER = range(9)
_NODE = "autograd::engine::evaluate_function: "
_COMPILED = "Torch-Compiled Region"
_USER_SCOPE = 7  # of a range that the program, or torch's own Python code, has named


@dataclass(slots=True)
class TraceEvent:
    """One event; times in nanoseconds."""

    name: str
    kind: int
    start: int
    end: int
    thread: int
    sequence: int  # that links an op with its node in the backward; -1: none
    forward_thread: int
    event: Any  # torch's own: shapes and such are asked for where they are needed

    @property
    def duration(self) -> int:
        return self.end - self.start


def rows_of(events: Iterable[Any]) -> list[TraceEvent]:
    """The host's events, without those of memory; what encloses another comes first."""
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
    """What an event stands for."""
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
