"""How layers are connected in a traced forward: the `structure` fact without training.

Nodes are the numbers of ops. All ops of a layer are one step.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from clew.hooks.collect_layers.layer_flow import LayerFlow, role_of
from clew.labs.network.trace.op_tracer import ForwardTrace, ModuleCall, Op
from clew.labs.network.visitor import aten_name
from clew.records.facts.model_facts import StructureFact
from clew.records.network import INPUT

# Ops that only move values; the names are those of the autograd nodes that count as such in a run.
MOVING = {
    "view",
    "unsafe_view",
    "reshape_alias",
    "transpose",
    "t",
    "permute",
    "clone",
    "squeeze",
    "unsqueeze",
    "to_copy",
}
SQUASHING = {"sigmoid", "tanh"}


def structure_fact(trace: ForwardTrace, root: str) -> StructureFact:
    """As a training forward would have it (docs/signals.md); what goes into a loss is not known."""
    way = TraceWay(trace)
    flow = LayerFlow(root, way)
    dropped = dict(_dropped(trace))
    noted = 0
    for call, entering in _events(trace):
        end = call.first_op if entering else call.end_op
        for op in trace.ops[noted:end]:
            _note_dropped(flow, op, dropped.get(op.index))
        noted = max(noted, end)
        if entering and call.reads:
            flow.enter(call.module, call.path, _node(call.reads[0]))
        elif not entering and call.done and len(call.makes) == 1:
            node = _node(call.makes[0])
            flow.leave(call.module, call.path, node)
            if node is not None and node in flow.made and flow.made[node].module is call.module:
                way.layers[node] = call
    return flow.fact(way.users(flow.between))


def _note_dropped(flow: LayerFlow, op: Op, p: float | None) -> None:
    inside = op.call is not None and role_of(op.call.module) == "dropout"
    if p is not None and not inside:
        flow.dropped(op.index, op.call.path if op.call is not None else "", p, (op.file, op.line))


class TraceWay:
    """Walks from op to op, skipping over each layer in one step."""

    def __init__(self, trace: ForwardTrace) -> None:
        self._trace = trace
        self.layers: dict[int, ModuleCall] = {}  # the op that produced a layer's output -> the layer's call

    def operand(self, node: Any) -> Any:
        layer = self.layers.get(node)
        if layer is not None:
            return _node(layer.reads[0]) if layer.reads else None
        masks = self._dropping if node in self._dropping else ()
        given = [s for s in self._trace.ops[node].sources if s not in masks]
        return _node(max(given, default=INPUT))

    def moves(self, node: Any) -> bool:
        return aten_name(self._trace.ops[node].function) in MOVING

    def squashes(self, node: Any) -> str | None:
        name = aten_name(self._trace.ops[node].function)
        return name if name in SQUASHING else None

    def users(self, wanted: set[Any]) -> dict[Any, int]:
        """How many ops and layers use each one on the way to the result."""
        found: dict[Any, set[Any]] = {node: set() for node in wanted}
        for op in self._trace.ops if wanted else ():
            if op.feeds_result and not makes_afresh(op):
                user = self._step(op)
                for source in op.sources:
                    if source in wanted and self._step(self._trace.ops[source]) != user:
                        found[source].add(user)
        ends = [node for node in self._trace.makers if node in wanted]
        return {node: len(users) + ends.count(node) for node, users in found.items()}

    def _step(self, op: Op) -> Any:
        """What an op is part of: the call of a layer, of dropout, or only itself."""
        if op.call is not None and role_of(op.call.module) is not None:
            return ("call", op.call.index)
        return self._dropping.get(op.index, op.index)

    @cached_property
    def _dropping(self) -> dict[int, Any]:
        """Ops of a call of `F.dropout`, by the op that ends it."""
        found: dict[int, Any] = {}
        for last, _ in _dropped(self._trace):
            found[last] = last
            for source in self._trace.ops[last].sources:
                found.update(dict.fromkeys(_mask_ops(self._trace, source), last))
        return found


def makes_afresh(op: Op) -> bool:
    """`zeros_like`, `new_ones`: the input gives the shape, not the values."""
    name = aten_name(op.function)
    return name.endswith("_like") or name.startswith("new_")


def _node(op: int) -> int | None:
    return None if op == INPUT else op


def _events(trace: ForwardTrace) -> Iterator[tuple[ModuleCall, bool]]:
    """Calls as they were entered (True) and left."""
    running: list[ModuleCall] = []
    for call in trace.calls:
        while running and running[-1] is not call.parent:
            yield running.pop(), False
        yield call, True
        running.append(call)
    while running:
        yield running.pop(), False


def _dropped(trace: ForwardTrace) -> Iterator[tuple[int, float]]:
    """Ops that end a dropout, and the share that it drops.

    Without a kernel for it, torch draws a mask of zeros and ones, scales it and multiplies.
    """
    for op in trace.ops:
        if aten_name(op.function) == "native_dropout":
            yield op.index, _number(op.args, 1)
        elif aten_name(op.function) == "mul" and len(op.sources) > 1:
            for source in op.sources:
                drawn = _mask_ops(trace, source)
                if drawn:
                    yield op.index, round(1.0 - _number(trace.ops[drawn[-1]].args, 1), 6)


def _mask_ops(trace: ForwardTrace, source: int) -> list[int]:
    """The ops that computed a dropout mask, the draw last; none if it is not a mask."""
    if source == INPUT or aten_name(trace.ops[source].function) != "div":
        return []
    draw = max(trace.ops[source].sources, default=INPUT)
    return [source, draw] if draw != INPUT and aten_name(trace.ops[draw].function) == "bernoulli" else []


def _number(args: tuple[Any, ...], place: int) -> float:
    value = args[place] if place < len(args) else 0.5
    return float(value) if isinstance(value, (int, float)) else 0.5
