"""`clew.visit`: visits every op, module call or autograd node of a network, in forward order."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn

from clew.labs.network.tensor_info import described, dtype_name
from clew.labs.network.trace.op_tracer import ForwardTrace, ModuleCall, Op
from clew.labs.network.trace.traced_forward import forward, unwrapped
from clew.records.network import INPUT, TensorInfo, Visited

_SUFFIX = re.compile(r"Backward\d*$")
_SMALL = (int, float, bool, str)

Visitor = Callable[[Visited], Any]
LEVELS = ("op", "module")


def visit(
    target: nn.Module | Callable[..., Any] | Tensor,
    *inputs: Any,
    visitor: Visitor | None = None,
    level: str = "op",
    keywords: Mapping[str, Any] | None = None,
    compute: bool | None = None,
) -> list[Visited]:
    """Call `visitor` with every op (or module call) in forward order, and return them all.

    `target` is a module or any callable, which is called with the inputs, or a tensor that has been
    computed, whose autograd graph is then walked back. Nothing is computed where that can be avoided
    (`compute=True` forces real values, `compute=False` forbids them); the model is left unchanged.
    """
    if level not in LEVELS:
        raise ValueError(f"level is {' or '.join(map(repr, LEVELS))}, not {level!r}")
    if isinstance(target, Tensor):
        if inputs:
            raise TypeError("a tensor is already a result: it takes no inputs")
        found = _walk_back(target)
    elif callable(target):
        model = unwrapped(target) if isinstance(target, nn.Module) else target
        trace = forward(model, inputs, dict(keywords or {}), compute=compute)
        if trace.error is not None:
            raise trace.error
        if level == "op":
            found = [_visited_op(op) for op in trace.ops]
        else:
            found = [_visited_call(trace, call) for call in trace.calls]
    else:
        raise TypeError(f"visit takes a module, a callable or a tensor, not {type(target).__name__}")
    if visitor is not None:
        for thing in found:
            visitor(thing)
    return found


def _visited_op(op: Op) -> Visited:
    return Visited(
        index=op.index,
        kind="op",
        type=str(op.function),
        name=aten_name(op.function),
        arguments=tuple(_arguments(op)),
        inputs=op.inputs,
        outputs=op.outputs,
        module=op.call.path if op.call is not None else None,
        file=op.file,
        line=op.line,
        feeds_result=op.feeds_result,
        sources=op.sources,
        flops=op.flops,
        call=op.call.number if op.call is not None else 1,
    )


def aten_name(function: Any) -> str:
    """`add` for `aten.add_.Tensor`; `op_name` of a recorder gives the name that users know: `linear`."""
    packet = getattr(function, "_overloadpacket", function)
    return str(getattr(packet, "__name__", packet)).rpartition(".")[2].strip("_")


def _arguments(op: Op) -> list[tuple[str, Any]]:
    names = _argument_names(op.function)
    more = tuple(f"arg{n}" for n in range(len(names), len(op.args)))
    return [*zip(names + more, op.args, strict=False), *op.kwargs.items()]


@lru_cache(maxsize=4096)
def _argument_names(function: Any) -> tuple[str, ...]:
    schema = getattr(function, "_schema", None)
    return tuple(a.name for a in schema.arguments) if schema is not None else ()


def _visited_call(trace: ForwardTrace, call: ModuleCall) -> Visited:
    kind = type(call.module)
    return Visited(
        index=call.index,
        kind="module",
        type=f"{kind.__module__}.{kind.__qualname__}",
        name=kind.__name__,
        arguments=(),
        inputs=call.inputs,
        outputs=call.outputs,
        module=call.path,
        file=call.file,
        line=call.line,
        feeds_result=feeds(trace, call),
        sources=tuple(dict.fromkeys(_source_call(trace, call, op) for op in call.reads)),
        flops=call.flops,
        call=call.number,
    )


def feeds(trace: ForwardTrace, call: ModuleCall) -> bool:
    """Whether the result needs this call; one without ops (Identity) feeds it if its output does."""
    ops = trace.ops[call.first_op : call.end_op]
    if ops:
        return any(op.feeds_result for op in ops)
    return any(i == INPUT or trace.ops[i].feeds_result for i in call.makes)


def _source_call(trace: ForwardTrace, call: ModuleCall, op: int) -> int:
    """The outermost call that produced this op's output and does not contain `call`; INPUT if none does."""
    if op == INPUT:
        return INPUT
    around = set()
    holder = call.parent
    while holder is not None:
        around.add(holder.index)
        holder = holder.parent
    maker, found = trace.ops[op].call, INPUT
    while maker is not None and maker.index not in around:
        found = maker.index
        maker = maker.parent
    return found


def _walk_back(result: Tensor) -> list[Visited]:
    """Nodes in forward order: each after all that it depends on. Iterative, so any depth works."""
    if result.grad_fn is None:
        return []
    order = _in_forward_order(result.grad_fn)
    index = {node: number for number, node in enumerate(order)}
    seen: list[Visited] = []
    for number, node in enumerate(order):
        sources = [(index[n], nr) for n, nr in node.next_functions if n is not None]
        inputs = [_output(seen[i], nr) for i, nr in sources]
        seen.append(
            Visited(
                index=number,
                kind="autograd",
                type=node.name(),
                name=_plain_name(node),
                arguments=tuple(_saved_arguments(node)),
                inputs=tuple(i for i in inputs if i is not None),
                outputs=tuple(_outputs(node)),
                module=None,
                file=None,
                line=None,
                feeds_result=True,
                sources=tuple(dict.fromkeys(i for i, _ in sources)) or (INPUT,),
            )
        )
    return seen


def _in_forward_order(start: Any) -> list[Any]:
    order: list[Any] = []
    state: dict[Any, bool] = {}  # False while its own sources are being walked
    waiting = [start]
    while waiting:
        node = waiting[-1]
        if node in state:
            waiting.pop()
            if not state[node]:
                state[node] = True
                order.append(node)
            continue
        state[node] = False
        waiting += [n for n, _ in reversed(node.next_functions) if n is not None and n not in state]
    return order


def _plain_name(node: Any) -> str:
    name = str(node.name()).rpartition("::")[2]
    return "leaf" if name.startswith("AccumulateGrad") else _SUFFIX.sub("", name).lower()


def _output(visited: Visited, number: int) -> TensorInfo | None:
    return visited.outputs[number] if number < len(visited.outputs) else None


def _outputs(node: Any) -> list[TensorInfo]:
    variable = getattr(node, "variable", None)
    if isinstance(variable, Tensor):
        return [described(variable)]
    return [_from_metadata(m) for m in getattr(node, "_input_metadata", ())]


def _from_metadata(metadata: Any) -> TensorInfo:
    shape = tuple(int(s) for s in metadata.shape)
    size = torch.Size(shape).numel() * metadata.dtype.itemsize
    return TensorInfo(shape, dtype_name(metadata.dtype), str(metadata.device), True, size)


def _saved_arguments(node: Any) -> list[tuple[str, Any]]:
    """What autograd saved of the call: its numbers; not its tensors, which may be freed."""
    found = []
    for name in dir(node):
        if name.startswith("_saved_"):
            try:
                value = getattr(node, name)
            except RuntimeError:  # freed by a backward
                continue
            if isinstance(value, _SMALL) or (
                isinstance(value, tuple) and all(isinstance(v, _SMALL) for v in value)
            ):
                found.append((name.removeprefix("_saved_"), value))
    return found
