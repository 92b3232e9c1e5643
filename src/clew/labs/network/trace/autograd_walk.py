"""Walk back from a computed tensor through its autograd graph, then give it in forward order."""

from __future__ import annotations

import re
from typing import Any

import torch
from torch import Tensor

from clew.labs.network.tensor_info import described, dtype_name
from clew.records.network import INPUT, TensorInfo, Visited

_SUFFIX = re.compile(r"Backward\d*$")
_SMALL = (int, float, bool, str)


def walk_back(result: Tensor) -> list[Visited]:
    """Nodes in forward order: each after all that it depends on. Nothing recurses, however deep the graph."""
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
    """What autograd kept of the call: its numbers, as they are; of tensors nothing, they may be gone."""
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
