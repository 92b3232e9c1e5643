"""Sizes with names for a graph: those of every module call, and of every op in between."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

from torch import nn

from clew.labs.network.network_inputs import Feed
from clew.labs.network.sizes.named_sizes import Naming
from clew.labs.network.sizes.resized_forward import other_sizes, resized
from clew.labs.network.sizes.size_fits import Sizes
from clew.labs.network.tensor_info import with_names
from clew.labs.network.trace.op_tracer import Trace
from clew.labs.network.trace.traced_forward import without_computing
from clew.records.network import TensorInfo

Ways = dict[tuple[int, int], str]  # a size here and at other sizes: how it is written


def name_sizes(trace: Trace, model: nn.Module, given: Feed) -> None:
    """Write names into the trace; where it can't be told which size is meant, numbers stay."""
    if not given.sizes:
        return
    naming = Naming(model, given, trace)
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


def _other_sizes(given: Feed) -> Sizes:
    """One for each name, all different."""
    taken = set(given.sizes.values())
    sizes = {}
    for name, size in given.sizes.items():
        sizes[name] = next(n for n in other_sizes(size, taken) if n not in taken)
        taken.add(sizes[name])
    return sizes


def _elsewhere(trace: Trace, model: nn.Module, given: Feed, sizes: Sizes) -> Trace | None:
    """The same ops at other sizes of all names; None if that is not to be had, or they are not the same."""
    try:
        other = without_computing(model, *resized(given, sizes))
    except (RuntimeError, IndexError):  # an input that can't be resized
        return None
    alike = [op.function for op in trace.ops] == [op.function for op in other.ops]
    return other if other.error is None and alike and len(trace.calls) == len(other.calls) else None


def _unmistakable(trace: Trace, other: Trace, names: dict[str, tuple[int, int]]) -> Ways:
    """How a size that is so here and so there is written, if it is everywhere written alike.

    As modules write it; a name by itself, and two that an op has merged.
    """
    ways = {sizes: {name} for name, sizes in names.items()}
    for (one, (here, there)), (two, (also, too)) in combinations(names.items(), 2):
        ways.setdefault((here * also, there * too), set()).add(f"{one}·{two}")
    for tensor, twin in _pairs(trace, other):
        for size, other_size, written in zip(tensor.shape, twin.shape, tensor.dims, strict=False):
            ways.setdefault((size, other_size), set()).add(written)
    return {sizes: written.pop() for sizes, written in ways.items() if len(written) == 1}


def _pairs(trace: Trace, other: Trace) -> Iterator[tuple[TensorInfo, TensorInfo]]:
    for call, twin in zip(trace.calls, other.calls, strict=True):
        yield from zip(call.outputs, twin.outputs, strict=False)
    yield from zip(trace.outputs, other.outputs, strict=False)


def _written(here: TensorInfo, there: TensorInfo, ways: Ways) -> TensorInfo:
    if len(here.shape) != len(there.shape):
        return here
    pairs = zip(here.shape, there.shape, strict=True)
    return replace(here, dims=tuple(str(n) if n == m else ways.get((n, m), str(n)) for n, m in pairs))
