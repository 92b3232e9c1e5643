"""Builds the graph of one real forward: every op, in its module, with the tensors between them.

Control flow, reuse and functional calls are right because nothing is read from source or traced
symbolically: what ran is what is drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any

from torch import nn

from clew.hooks.steps.replay_inputs import Call
from clew.labs.network.network_inputs import EVEN, ForwardInputs, arguments_of, forward_inputs
from clew.labs.network.shape_errors.shape_error import ForwardError, explain
from clew.labs.network.sizes.named_sizes import SizeNames
from clew.labs.network.sizes.resized_forward import other_sizes, resized
from clew.labs.network.sizes.size_formulas import Sizes
from clew.labs.network.tensor_info import with_names
from clew.labs.network.trace.op_tracer import ForwardTrace, ModuleCall, Op
from clew.labs.network.trace.sibling_groups import Tree, fold
from clew.labs.network.trace.traced_forward import for_real, forward, unwrapped, without_computing
from clew.labs.network.visitor import aten_name, feeds
from clew.labs.snapshot.snapshot import Autocast, snapshot
from clew.measure.rng import Rng
from clew.records.network import INPUT, Edge, Graph, Node, TensorInfo

Ways = dict[tuple[int, int], str]  # a size here and at other sizes: how it is written

_BOOKKEEPING = {"detach", "empty", "empty_like", "t", "lift_fresh", "device"}  # not steps of the network


def graph(
    target: nn.Module | Callable[..., Any],
    inputs: Any = None,
    *,
    dims: Any = None,
    dtype: Any = None,
    compute: bool | None = None,
) -> Graph:
    """The graph of one forward; inputs as for `summary`. Also works for models that torch.export rejects."""
    model = unwrapped(target) if isinstance(target, nn.Module) else target
    module = model if isinstance(model, nn.Module) else None
    given, trace = _traced(model, module, inputs, {"dims": dims, "dtype": dtype}, compute)
    if trace.error is not None:
        raise ForwardError(explain(trace.error, module, trace))
    if module is not None:
        name_sizes(trace, module, given)
    return _Builder(trace, list(given.described())).graph(getattr(model, "__name__", type(model).__name__))


def _traced(
    model: Callable[..., Any],
    module: nn.Module | None,
    inputs: Any,
    sizes: dict[str, Any],
    compute: bool | None,
) -> tuple[ForwardInputs, ForwardTrace]:
    """As for the table: made-up sizes become even if the model can't take odd ones."""
    found: tuple[ForwardInputs, ForwardTrace] | None = None
    for factor in (1, *EVEN):
        given = forward_inputs(
            module if module is not None else nn.Identity(), inputs, factor=factor, **sizes
        )
        if module is None:
            given.arguments = arguments_of(model)
        trace = forward(model, given.args, given.kwargs, compute=compute)
        if trace.error is None or not given.invented:
            return given, trace
        found = found or (given, trace)  # the first failure is the one to explain
    assert found is not None
    return found


def graph_of_call(model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Graph:
    """The graph of one call with real values, as the program makes it."""
    trace = for_real(model, args, kwargs)
    if trace.error is not None:
        raise ForwardError(explain(trace.error, model, trace))
    given = ForwardInputs(args, kwargs, arguments=arguments_of(model.forward))
    return _Builder(trace, list(given.described())).graph(type(model).__name__)


def graph_of_held_call(call: Call, rng: Rng, autocast: Autocast) -> Graph:
    """The graph of a call of the program's step, run again with the same random numbers and dtype."""
    module, args, kwargs = call
    with snapshot(list(module.modules()), rng=rng, autocast=autocast):
        return graph_of_call(unwrapped(module), args, kwargs)


class _Builder:
    """Numbers: calls first, then ops, then inputs, then the output."""

    def __init__(self, trace: ForwardTrace, inputs: list[Any]) -> None:
        self._trace = trace
        self._inputs = inputs
        self._calls = len(trace.calls)
        self._first_input = self._calls + len(trace.ops)
        self._through = {op.index: _step_over(op) for op in trace.ops}

    def graph(self, name: str) -> Graph:
        nodes = [*self._call_nodes(), *self._op_nodes(), *self._end_nodes()]
        edges = list(dict.fromkeys(self._edges()))
        used = {e.source for e in edges} | {e.target for e in edges}
        used |= {n.id for n in nodes if n.kind == "module"}
        kept = [n for n in nodes if n.id in used or n.kind == "output"]
        return Graph(name, tuple(self._folded(kept)), tuple(edges))

    def _call_nodes(self) -> list[Node]:
        return [
            Node(
                id=call.index,
                parent=call.parent.index if call.parent is not None else None,
                kind="module",
                label=_label(call),
                type=type(call.module).__name__,
                path=call.path,
                outputs=call.outputs,
                flops=call.flops,
                parameters=sum(p.numel() for p in call.module.parameters()),
                saved=call.saved,
                feeds_result=feeds(self._trace, call),
                file=call.file,
                line=call.line,
            )
            for call in self._trace.calls
        ]

    def _op_nodes(self) -> list[Node]:
        return [
            Node(
                id=self._calls + op.index,
                parent=op.call.index if op.call is not None else None,
                kind="op",
                label=aten_name(op.function),
                type=str(op.function),
                path=op.call.path if op.call is not None else "",
                outputs=op.outputs,
                flops=op.flops,
                feeds_result=op.feeds_result,
                file=op.file,
                line=op.line,
            )
            for op in self._trace.ops
            if self._through[op.index] is None
        ]

    def _end_nodes(self) -> list[Node]:
        nodes = [
            Node(self._first_input + n, None, "input", name, "input", "", (tensor,))
            for n, (name, tensor) in enumerate(self._inputs)
        ]
        output = Node(self._output, None, "output", "output", "output", "", self._trace.outputs)
        return [*nodes, output]

    @property
    def _output(self) -> int:
        return self._first_input + len(self._inputs)

    def _edges(self) -> list[Edge]:
        edges: list[Edge | None] = []
        for op in self._trace.ops:
            if self._through[op.index] is not None:
                continue
            edges += [self._edge(s, self._calls + op.index) for s in op.sources if s != INPUT]
            edges += self._input_edges(op)
        edges += [self._edge(m, self._output) for m in self._trace.makers if m != INPUT]
        return [e for e in edges if e is not None]

    def _edge(self, source: int, target: int) -> Edge | None:
        """From the op that really produced it, skipping ops that are not steps of the network."""
        step = self._through[source]
        while step is not None:
            if step == INPUT:
                return None
            source, step = step, self._through[step]
        made = self._trace.ops[source].outputs
        return Edge(self._calls + source, target, made[0] if made else None)

    def _input_edges(self, op: Op) -> list[Edge | None]:
        target = self._calls + op.index
        return [Edge(self._first_input + n, target, self._inputs[n][1]) for n in op.given]

    def _folded(self, nodes: list[Node]) -> list[Node]:
        """In execution order: blocks with something else running between them are not consecutive."""
        by_time = sorted(nodes, key=self._began)
        marked = {n.id: n for n in _folded(by_time)}
        return [marked[n.id] for n in nodes]

    def _began(self, node: Node) -> tuple[int, int, int]:
        """The op it begins with; a container comes before its ops."""
        if node.kind == "module":
            return self._trace.calls[node.id].first_op, 0, node.id
        return node.id - self._calls, 1, node.id


def _label(call: ModuleCall) -> str:
    """Its path below that of the calling module."""
    above = call.parent.path if call.parent is not None else ""
    return (call.path.removeprefix(f"{above}.") if above else call.path) or type(call.module).__name__


def _step_over(op: Op) -> int | None:
    """The source that replaces an op without a meaning of its own; None for all others."""
    if aten_name(op.function) not in _BOOKKEEPING or op.given:
        return None
    return max(op.sources, default=INPUT)


def _folded(nodes: list[Node]) -> list[Node]:
    place = {node.id: number for number, node in enumerate(nodes)}
    parents = [place.get(node.parent) if node.parent is not None else None for node in nodes]

    def signature(number: int) -> Any:
        node = nodes[number]
        above, _, last = node.label.rpartition(".")
        label = above if last.isdigit() else node.label
        return (
            node.kind,
            label,
            node.type,
            str([t.shape for t in node.outputs]),
            node.parameters,
            node.flops,
        )

    def can_fold(number: int) -> bool:
        return nodes[number].kind == "module" and nodes[number].label.rpartition(".")[2].isdigit()

    repeats, hidden = fold(Tree(parents, signature), can_fold)
    return [replace(n, repeat=repeats.get(i, 1), hidden=i in hidden) for i, n in enumerate(nodes)]


def name_sizes(trace: ForwardTrace, model: nn.Module, given: ForwardInputs) -> None:
    """Write names into the trace; a size that may mean several names stays a number."""
    if not given.sizes:
        return
    naming = SizeNames(model, given, trace)
    calls = naming.of_calls()
    for call in trace.calls:
        call.outputs = with_names(call.outputs, calls.get((call.path, call.number), []))
    trace.outputs = with_names(trace.outputs, naming.of_result())
    sizes = _other_sizes(given)
    other = _elsewhere(trace, model, given, sizes)
    if other is None:
        return
    ways = _unmistakable(trace, other, {name: (size, sizes[name]) for name, size in given.sizes.items()})
    for op, twin in zip(trace.ops, other.ops, strict=True):
        op.outputs = tuple(_written(t, o, ways) for t, o in zip(op.outputs, twin.outputs, strict=True))


def _other_sizes(given: ForwardInputs) -> Sizes:
    """One for each name, all different."""
    taken = set(given.sizes.values())
    sizes = {}
    for name, size in given.sizes.items():
        sizes[name] = next(n for n in other_sizes(size, taken) if n not in taken)
        taken.add(sizes[name])
    return sizes


def _elsewhere(
    trace: ForwardTrace, model: nn.Module, given: ForwardInputs, sizes: Sizes
) -> ForwardTrace | None:
    """The same ops at other sizes of all names; None if not available, or if the ops differ."""
    try:
        other = without_computing(model, *resized(given, sizes))
    except (RuntimeError, IndexError):  # an input that can't be resized
        return None
    alike = [op.function for op in trace.ops] == [op.function for op in other.ops]
    return other if other.error is None and alike and len(trace.calls) == len(other.calls) else None


def _unmistakable(trace: ForwardTrace, other: ForwardTrace, names: dict[str, tuple[int, int]]) -> Ways:
    """How a size with these values here and there is written, if it is written the same everywhere.

    As modules write it; a name by itself, and two that an op has merged.
    """
    ways = {sizes: {name} for name, sizes in names.items()}
    for (one, (here, there)), (two, (also, too)) in combinations(names.items(), 2):
        ways.setdefault((here * also, there * too), set()).add(f"{one}·{two}")
    for tensor, twin in _pairs(trace, other):
        for size, other_size, written in zip(tensor.shape, twin.shape, tensor.dims, strict=False):
            ways.setdefault((size, other_size), set()).add(written)
    return {sizes: written.pop() for sizes, written in ways.items() if len(written) == 1}


def _pairs(trace: ForwardTrace, other: ForwardTrace) -> Iterator[tuple[TensorInfo, TensorInfo]]:
    for call, twin in zip(trace.calls, other.calls, strict=True):
        yield from zip(call.outputs, twin.outputs, strict=False)
    yield from zip(trace.outputs, other.outputs, strict=False)


def _written(here: TensorInfo, there: TensorInfo, ways: Ways) -> TensorInfo:
    if len(here.shape) != len(there.shape):
        return here
    pairs = zip(here.shape, there.shape, strict=True)
    return replace(here, dims=tuple(str(n) if n == m else ways.get((n, m), str(n)) for n, m in pairs))
