"""Sizes with names for a graph: those of every module call, and of every op in between."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from torch import nn

from clew.model.dimensions import Naming
from clew.model.inputs import Feed
from clew.model.tensors import with_names
from clew.model.tracing import Trace
from clew.structure import TensorInfo


def name_sizes(trace: Trace, model: nn.Module, given: Feed) -> None:
    """Write names into the trace; where it can't be told which size is meant, numbers stay."""
    if not given.sizes:
        return
    naming = Naming(model, given, trace)
    calls = naming.of_calls()
    for call in trace.calls:
        call.outputs = with_names(call.outputs, calls.get((call.path, call.number), []))
    trace.outputs = with_names(trace.outputs, naming.of_result())
    inputs = (info for _, info in given.described())
    known = _unmistakable((*inputs, *trace.outputs, *(t for call in trace.calls for t in call.outputs)))
    for op in trace.ops:
        op.outputs = tuple(
            replace(t, dims=tuple(known.get(size, str(size)) for size in t.shape)) for t in op.outputs
        )


def _unmistakable(tensors: Iterable[TensorInfo]) -> dict[int, str]:
    """How a size is written, if all modules that have one of this size write it so."""
    ways: dict[int, set[str]] = {}
    for tensor in tensors:
        for size, written in zip(tensor.shape, tensor.dims or map(str, tensor.shape), strict=True):
            ways.setdefault(size, set()).add(written)
    return {size: written.pop() for size, written in ways.items() if len(written) == 1}
