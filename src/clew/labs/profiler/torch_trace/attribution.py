"""Attributes every event of a window to a part of the step, a module and an op.

A forward op belongs to the innermost open module on its thread. A node of the backward belongs
to the op that created it, which torch identifies by a sequence number, and so to that op's module. It takes
one pass over the events in the order in which they began, with one stack per thread.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from clew.labs.profiler.torch_trace.module_scopes import Scope
from clew.labs.profiler.torch_trace.torch_events import (
    DATA,
    ENGINE,
    NODE,
    OP,
    OPTIMIZER,
    OURS,
    SCOPE,
    STEP,
    STEP_MARK,
    TraceEvent,
    node_name,
)

NS = 1e-9
ACCUMULATE = "AccumulateGrad"
COMPILED = Scope("compiled code", "", "torch.compile")
CLEW = "clew"  # the part of a step that is not the program's
_PARTS = {ENGINE: "backward", OPTIMIZER: "optimizer", DATA: "data", OURS: CLEW}  # that these ranges stand for


@dataclass(eq=False, slots=True)
class CostPlace:
    """A module in the chain of open modules: the same module in another chain is another place."""

    scope: Scope
    parent: CostPlace | None = None
    children: dict[str, CostPlace] = field(default_factory=dict)

    def upwards(self) -> Iterator[CostPlace]:
        """This place, and those around it."""
        place: CostPlace | None = self
        while place is not None:
            yield place
            place = place.parent


@dataclass(eq=False, slots=True)
class EventSpan:
    """An attributed event."""

    row: TraceEvent
    part: str  # "forward", "backward", "optimizer", "data", "rest" or CLEW
    place: CostPlace | None  # the module that it belongs to
    step: int  # number within the window; -1: in none
    main: bool  # on the training thread
    parent: EventSpan | None = None
    op: EventSpan | None = None  # the outermost op around it, or itself; for a node the op that created it
    node: EventSpan | None = None  # the node of the backward around it, or itself
    inner: int = 0  # nanoseconds of the events inside it

    @property
    def own(self) -> int:
        return max(self.row.duration - self.inner, 0)


@dataclass
class AttributedWindow:
    """A window, attributed."""

    steps: list[int]  # numbers of its whole steps
    bounds: list[int]  # nanoseconds at which they begin, and the end of the last
    spans: list[EventSpan]
    evaluating: set[int] = field(default_factory=set)  # steps, by place, with forwards without gradients

    def duration(self, place: int) -> float:
        """Seconds of a step."""
        return (self.bounds[place + 1] - self.bounds[place]) * NS


def attribute(rows: list[TraceEvent], table: Mapping[str, Scope]) -> AttributedWindow | None:
    """All events of the complete steps; None if there are none."""
    marks = [row for row in rows if row.kind == STEP_MARK]
    if len(marks) < 2:
        return None
    steps = [int(row.name.removeprefix(STEP)) for row in marks[:-1]]
    traced = AttributedWindow(steps, [row.start for row in marks], [])
    trains = any(row.kind == NODE for row in rows)
    _Pass(traced, table, marks[0].thread, trains).run(rows)
    return traced


class _Pass:
    def __init__(self, traced: AttributedWindow, table: Mapping[str, Scope], main: int, trains: bool) -> None:
        self._traced = traced
        self._table = table
        self._main = main
        self._trains = trains  # else forwards without gradients are the work itself
        self._stacks: dict[int, list[EventSpan]] = {}
        self._tops: dict[str, CostPlace] = {}  # the outermost modules
        self._makers: dict[tuple[int, int], EventSpan] = {}  # (thread, sequence number): the op of that node
        self._last: dict[int, EventSpan] = {}  # the last node that a thread evaluated

    def run(self, rows: list[TraceEvent]) -> None:
        for row in rows:
            if row.kind != STEP_MARK:
                self._traced.spans.append(self._take(row))
        self._traced.spans = [span for span in self._traced.spans if span.step >= 0]

    def _take(self, row: TraceEvent) -> EventSpan:
        stack = self._stacks.setdefault(row.thread, [])
        while stack and stack[-1].row.end <= row.start:
            stack.pop()
        parent = stack[-1] if stack else None
        span = self._span(row, parent)
        if parent is not None:
            parent.inner += min(row.end, parent.row.end) - row.start
        stack.append(span)
        return span

    def _span(self, row: TraceEvent, parent: EventSpan | None) -> EventSpan:
        part = parent.part if parent is not None else "rest"
        place = parent.place if parent is not None else None
        step = bisect_right(self._traced.bounds, row.start) - 1
        if step >= len(self._traced.steps):
            step = -1
        span = EventSpan(row, part, place, step, row.thread == self._main, parent)
        if parent is not None:
            span.op, span.node = parent.op, parent.node
        if row.kind in _PARTS:
            span.part, span.place, span.op = _PARTS[row.kind], None, None
        elif row.kind == OP:
            self._op(span)
        elif row.kind == SCOPE:
            self._scope(span)
        elif row.kind == NODE:
            self._node(span)
        return span  # any other range means nothing here: its contents belong to the enclosing range

    def _op(self, span: EventSpan) -> None:
        if span.op is None:
            span.op = span
        if span.row.sequence >= 0:
            self._makers[span.row.thread, span.row.sequence] = span  # the last one to have the number

    def _scope(self, span: EventSpan) -> None:
        scope = self._meant(span)
        if span.place is None and span.part in ("rest", "optimizer") and not scope.evaluates:
            span.part = "forward" if scope.trains else "rest"  # including a closure that `step` calls
        if scope.evaluates and span.step >= 0:
            self._traced.evaluating.add(span.step)
        siblings = self._tops if span.place is None else span.place.children
        known = siblings.get(span.row.name)
        if known is None:
            known = siblings[span.row.name] = CostPlace(scope, span.place)
        span.place, span.op = known, None

    def _meant(self, span: EventSpan) -> Scope:
        scope = self._table.get(span.row.name, COMPILED)
        if scope.evaluates and not self._trains:
            return replace(scope, evaluates=False, trains=True)
        inside = span.place is not None and span.place.scope.evaluates
        return replace(scope, evaluates=True, trains=False) if inside else scope

    def _node(self, span: EventSpan) -> None:
        """The owner of a node; an accumulated gradient belongs to the node that computed it just before."""
        span.part, span.op, span.node = "backward", None, span
        maker = self._makers.get((span.row.forward_thread, span.row.sequence))
        if node_name(span.row) == ACCUMULATE:
            maker = self._last.get(span.row.thread)
        elif maker is not None:
            self._last[span.row.thread] = maker
        else:
            self._last.pop(span.row.thread, None)
        span.place = maker.place if maker is not None else None
        span.op = maker.op if maker is not None else None
