"""Reads recorded windows: attributes their events and adds them up, as plain data of `step_costs`."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from clew.labs.profiler.cost_tally import CostTally, ModuleTally
from clew.labs.profiler.torch_trace.attribution import NS, AttributedWindow, EventSpan, attribute
from clew.labs.profiler.torch_trace.kineto_window import TraceDetail
from clew.labs.profiler.torch_trace.module_scopes import Scope
from clew.labs.profiler.torch_trace.roofline import share
from clew.labs.profiler.torch_trace.torch_events import (
    DATA,
    ENGINE,
    NODE,
    OP,
    OPTIMIZER,
    SCOPE,
    device_copies,
    node_name,
    rows_of,
)
from clew.records.step_costs import PARTS, FlameFrame, ModuleCost, OpCost, Roof, TimelineEvent

MOST_OPS = 2_000
MOST_TIMELINE = 1_500
DELAYED = 3.0  # times the median length: the machine, not the program, made the step long
BRIEF = 0.0005  # of the step: shorter events are left out of the timeline


@dataclass(frozen=True)
class WindowReading:
    """What the windows show about a step; times are seconds per step."""

    steps: tuple[int, ...] = ()  # their numbers
    step: float = 0.0  # mean length
    durations: tuple[float, ...] = ()  # of each step
    by_step: dict[str, tuple[float, ...]] = field(default_factory=dict)  # and its parts
    modules: tuple[ModuleCost, ...] = ()
    ops: tuple[OpCost, ...] = ()
    flame: FlameFrame | None = None
    timeline: tuple[TimelineEvent, ...] = ()
    left: float = 0.0  # in no module, no op and no named part
    to_device: float = 0.0
    unnamed: float = 0.0  # share of the part `rest` that no op and no module accounts for


def read(details: Sequence[TraceDetail], best: Roof | None = None) -> WindowReading:
    """All windows together; steps that include an evaluation count only if there are no others."""
    windows, copied = [], 0.0
    for detail in details:
        raw = detail.events()
        traced = attribute(rows_of(raw), detail.table)
        if traced is not None:
            windows.append(traced)
            copied += sum(ns for at, ns in device_copies(raw) if _in_steps(at, traced)) * NS
    chosen = [_chosen(traced, windows) for traced in windows]
    if not any(chosen):
        return WindowReading()
    tally = CostTally(_ScopeNames(windows))
    for traced, places in zip(windows, chosen, strict=True):
        if places:
            tally.add(traced, places)
    numbers = [t.steps[p] for t, places in zip(windows, chosen, strict=True) for p in sorted(places)]
    return _reading(tally, windows, numbers, copied, best)


def _reading(
    tally: CostTally, windows: list[AttributedWindow], numbers: list[int], copied: float, best: Roof | None
) -> WindowReading:
    count = tally.steps
    middle = _typical(windows)
    return WindowReading(
        steps=tuple(numbers),
        step=statistics.fmean(tally.durations),
        durations=tuple(tally.durations),
        by_step={name: tuple(seconds) for name, seconds in _with_rest(tally).items()},
        modules=_modules(tally, best),
        ops=_ops(tally, best),
        flame=tally.flame(PARTS, _module_title),
        timeline=tuple(timeline(*middle, tally)) if middle is not None else (),
        left=tally.left / count,
        to_device=copied / count,
        unnamed=max(1.0 - tally.named_rest / tally.rest, 0.0) if tally.rest else 0.0,
    )


def _with_rest(tally: CostTally) -> dict[str, list[float]]:
    """The parts of each step; time without events belongs to the rest."""
    others = {name: seconds for name, seconds in tally.by_step.items() if name != "rest"}
    known = [sum(values) for values in zip(*others.values(), strict=True)] or [0.0] * tally.steps
    rest = [max(whole - part, 0.0) for whole, part in zip(tally.durations, known, strict=True)]
    return {**others, "rest": rest}


def _module_title(name: str, scope: Scope) -> str:
    if not name:
        return scope.kind or scope.root
    return f"{name} ({scope.kind})" if scope.kind else name


def _in_steps(at: int, traced: AttributedWindow) -> bool:
    return traced.bounds[0] <= at < traced.bounds[-1]


def _chosen(traced: AttributedWindow, windows: list[AttributedWindow]) -> set[int]:
    """Typical steps: without an evaluation, and not delayed from outside."""
    every = set(range(len(traced.steps)))
    others = any(len(t.evaluating) < len(t.steps) for t in windows)
    chosen = every - traced.evaluating if others else every
    if others:
        lengths = [t.duration(p) for t in windows for p in range(len(t.steps)) if p not in t.evaluating]
        limit = DELAYED * statistics.median(lengths)
        chosen = {place for place in chosen if traced.duration(place) <= limit}
    return chosen


def _typical(windows: list[AttributedWindow]) -> tuple[AttributedWindow, int] | None:
    """The step of median length."""
    steps = [(one.duration(place), one, place) for one in windows for place in _chosen(one, windows)]
    if not steps:
        return None
    middle = statistics.median_low([seconds for seconds, *_ in steps])
    _, one, place = next(entry for entry in steps if entry[0] == middle)
    return one, place


class _ScopeNames:
    """Names modules by their path, prefixed with the model's name if there are several models."""

    def __init__(self, windows: list[AttributedWindow]) -> None:
        scopes = {span.place.scope for traced in windows for span in traced.spans if span.place is not None}
        self._several = len({scope.root for scope in scopes if scope.trains}) > 1
        self._taken = {scope.path for scope in scopes if scope.trains}
        self._known: dict[Scope, str] = {}

    def __call__(self, scope: Scope) -> str:
        name = self._known.get(scope)
        if name is None:
            name = self._known[scope] = self._make(scope)
        return name

    def _make(self, scope: Scope) -> str:
        full = scope.full_name
        if scope.evaluates:
            return f"{full} without gradients"
        if not scope.trains:
            return f"({full})" if full in self._taken else full
        return full if self._several else scope.path


# -- modules and ops --


def _modules(tally: CostTally, best: Roof | None) -> tuple[ModuleCost, ...]:
    ordered = sorted(tally.modules.items(), key=lambda pair: pair[1].order)
    return tuple(_module(name, module, tally.steps, best) for name, module in ordered)


def _module(name: str, tally: ModuleTally, steps: int, best: Roof | None) -> ModuleCost:
    both = [tally.forward.get(n, 0.0) + tally.backward.get(n, 0.0) for n in range(steps)]
    forward, backward = sum(tally.forward.values()) / steps, sum(tally.backward.values()) / steps
    flops, moved = tally.flops / steps, tally.moved / steps
    scope = tally.scope or Scope("", "")
    return ModuleCost(
        module=name,
        type=scope.kind,
        calls=tally.calls / steps,
        forward=forward,
        backward=backward,
        self_forward=tally.self_forward / steps,
        self_backward=tally.self_backward / steps,
        spread=statistics.pstdev(both) if steps > 1 else 0.0,
        steps=steps,
        flops=flops,
        moved=moved,
        roof=share(flops, moved, forward + backward, best),
        parameters=scope.parameters,
        file=scope.file,
        line=scope.line,
    )


def _ops(tally: CostTally, best: Roof | None) -> tuple[OpCost, ...]:
    costs = []
    for (module, op, shapes, arguments), found in tally.ops.items():
        seconds, steps = found.forward + found.backward, tally.steps
        costs.append(
            OpCost(
                module=module,
                op=op,
                shapes=shapes,
                arguments=arguments,
                calls=found.calls / steps,
                forward=found.forward / steps,
                backward=found.backward / steps,
                flops=found.flops / steps,
                moved=found.moved / steps,
                roof=share(found.flops, found.moved, seconds, best),
            )
        )
    costs.sort(key=lambda cost: -(cost.forward + cost.backward))
    return tuple(costs[:MOST_OPS])


# -- one step as it went --

_SHOWN = {SCOPE, OP, NODE, ENGINE, OPTIMIZER, DATA}


def timeline(traced: AttributedWindow, place: int, tally: CostTally) -> list[TimelineEvent]:
    """The events of one step, the outermost ops only; seconds from its beginning."""
    began, least = traced.bounds[place], BRIEF * traced.duration(place)
    shown = [s for s in traced.spans if s.step == place and s.row.kind in _SHOWN and _is_outer(s)]
    shown = [s for s in shown if s.row.duration * NS >= least]
    if len(shown) > MOST_TIMELINE:
        limit = sorted((s.row.duration for s in shown), reverse=True)[MOST_TIMELINE]
        shown = [s for s in shown if s.row.duration > limit]
    return [
        TimelineEvent(
            name=_span_title(span),
            start=(span.row.start - began) * NS,
            duration=span.row.duration * NS,
            lane="main" if span.main else f"thread {span.row.thread}",
            module=tally.name_of(span.place.scope) if span.place is not None else None,
        )
        for span in shown
    ]


def _is_outer(span: EventSpan) -> bool:
    """Not called by another op or backward node, which is already shown."""
    return span.row.kind != OP or (span.op is span and span.node is None)


def _span_title(span: EventSpan) -> str:
    if span.row.kind == NODE:
        return node_name(span.row)
    if span.row.kind == SCOPE and span.place is not None:
        return span.place.scope.kind or span.row.name
    return {ENGINE: "backward", OPTIMIZER: "optimizer", DATA: "data"}.get(span.row.kind, span.row.name)
