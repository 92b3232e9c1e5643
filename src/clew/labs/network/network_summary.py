"""Summary of a network: its modules, their outputs, and where parameters, FLOPs and memory are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter

from clew.labs.network.network_facts import TracedNetwork
from clew.labs.network.network_inputs import EVEN, BadInputError, ForwardInputs, forward_inputs
from clew.labs.network.shape_errors.shape_error import ForwardError, explain
from clew.labs.network.sizes.named_sizes import SizeNames
from clew.labs.network.tensor_description import statistics_of
from clew.labs.network.tensor_info import described, dtype_name, with_names
from clew.labs.network.trace.op_tracer import ForwardTrace, ModuleCall
from clew.labs.network.trace.sibling_groups import Tree, fold
from clew.labs.network.trace.traced_forward import can_compute, for_real, forward, unwrapped
from clew.measure.nested_tensors import tensors_in
from clew.records.network import ModuleRow, NetworkMemory, Statistics, Summary

# Tensors that an optimizer keeps for each parameter.
STATES = {"sgd": 0, "momentum": 1, "rmsprop": 1, "adagrad": 1, "lion": 1, "adam": 2, "adamw": 2}
_NAMES = {"sgd": "SGD", "momentum": "SGD with momentum", "rmsprop": "RMSprop", "adagrad": "Adagrad"}

Values = dict[int, tuple[Statistics | None, Statistics | None]]  # by call: of the data, of its gradient
Loss = Callable[[Any], Tensor]


def summarise(
    model: nn.Module,
    inputs: Any = None,
    *,
    dims: Mapping[str, int | None] | Sequence[str] | None = None,
    dtype: torch.dtype | None = None,
    statistics: bool = False,
    loss: Loss | None = None,
    optimizer: str = "adam",
    compute: bool | None = None,
    keep_going: bool = False,
) -> tuple[Summary, TracedNetwork]:
    """`clew.summary` without the findings, and the facts that the checks need."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"summary takes a module, not {type(model).__name__}")
    if optimizer.lower() not in STATES:
        raise BadInputError(f"optimizer is one of {', '.join(STATES)}, not {optimizer!r}")
    model = unwrapped(model)
    lazy = next((n for n, p in model.named_parameters() if isinstance(p, UninitializedParameter)), None)
    if lazy is not None:
        raise BadInputError(f"{lazy} has no shape yet: run one batch through the model first")
    given = forward_inputs(model, inputs, dims=dims, dtype=dtype)
    options: dict[str, Any] = {"statistics": statistics, "loss": loss, "compute": compute}
    trace, values = _run(model, given, **options)
    notes: list[str] = []
    if trace.error is not None and given.invented:
        for factor in EVEN:
            even = forward_inputs(model, inputs, dims=dims, dtype=dtype, factor=factor)
            again, even_values = _run(model, even, **options)
            if again.error is None:
                notes.append(f"it fails at {_sizes_text(given)}; these sizes are multiples of {factor}")
                given, trace, values = even, again, even_values
                break
    shape_error = None
    if trace.error is not None:
        shape_error = explain(trace.error, model, trace)
        if not keep_going:
            raise ForwardError(shape_error) from trace.error
    naming = SizeNames(model, given, trace) if shape_error is None else None
    rows = _folded(_named(_rows(model, trace, values), naming))
    parameters = list(model.parameters())
    found = Summary(
        name=type(model).__name__,
        inputs=tuple(given.described()),
        outputs=with_names(trace.outputs, naming.of_result() if naming is not None else []),
        rows=tuple(rows),
        trainable=_elements(p for p in parameters if p.requires_grad),
        frozen=_elements(p for p in parameters if not p.requires_grad),
        buffers=_elements(model.buffers()),
        flops=trace.calls[0].flops if trace.calls else 0,
        memory=_memory(model, trace, optimizer.lower()),
        computed=trace.computed,
        dims=tuple(given.sizes.items()),
        notes=(*notes, *_notes(model, trace, naming, statistics or compute is True)),
        shape_error=shape_error,
    )
    return found, TracedNetwork(model, given, trace)


def _run(
    model: nn.Module, given: ForwardInputs, *, statistics: bool, loss: Loss | None, compute: bool | None
) -> tuple[ForwardTrace, Values]:
    if not statistics:
        return forward(model, given.args, given.kwargs, compute=compute), {}
    if not can_compute(model, given.args, given.kwargs):
        raise BadInputError("statistics need values, but this model is on the meta device")
    data: dict[int, Statistics | None] = {}
    kept: list[tuple[int, Tensor]] = []

    def note(call: ModuleCall, output: Any) -> None:
        first = next((t for t in tensors_in(output) if t.is_floating_point()), None)
        if first is not None:
            data[call.index] = statistics_of(first)
            if first.requires_grad:
                kept.append((call.index, first))

    gradients: dict[int, Statistics | None] = {}
    trace = for_real(
        model,
        given.args,
        given.kwargs,
        on_call=note,
        after=lambda trace: gradients.update(_gradients(trace, kept, loss)),
    )
    return trace, {i: (s, gradients.get(i)) for i, s in data.items()}


def _gradients(
    trace: ForwardTrace, kept: list[tuple[int, Tensor]], loss: Loss | None
) -> dict[int, Statistics | None]:
    """The gradient of every output, without leaving a `.grad` anywhere."""
    if trace.error is not None or not kept:
        return {}
    value = (loss or half_mean_square)(trace.result)
    if value is None or not value.requires_grad:
        return {}
    found = torch.autograd.grad(value, [t for _, t in kept], allow_unused=True)
    return {i: statistics_of(g) for (i, _), g in zip(kept, found, strict=True) if g is not None}


def half_mean_square(result: Any) -> Tensor | None:
    """A loss for any output: its gradient is the output itself, so it is zero only where the output is."""
    parts = [t for t in tensors_in(result) if t.is_floating_point() and t.requires_grad]
    return torch.stack([t.double().square().mean() / 2 for t in parts]).sum() if parts else None


def _rows(model: nn.Module, trace: ForwardTrace, values: Values) -> list[ModuleRow]:
    counted: set[int] = set()
    active: list[ModuleCall] = []
    rows = []
    inside = {id(m): list(m.parameters()) for m in {id(c.module): c.module for c in trace.calls}.values()}
    for call in trace.calls:
        while active and active[-1] is not call.parent:
            counted.update(map(id, inside[id(active.pop().module)]))
        rows.append(_row(call, inside[id(call.module)], counted, values))
        active.append(call)
    return rows + _never_ran(model, trace)


def _row(call: ModuleCall, parameters: list[nn.Parameter], counted: set[int], values: Values) -> ModuleRow:
    fresh = [p for p in parameters if id(p) not in counted]
    home = call.outputs[0] if call.outputs else next((described(p) for p in parameters), None)
    data, gradient = values.get(call.index, (None, None))
    return ModuleRow(
        path=call.path,
        kind=type(call.module).__name__,
        depth=call.depth,
        call=call.number,
        inputs=call.inputs,
        outputs=call.outputs,
        trainable=_elements(p for p in fresh if p.requires_grad),
        frozen=_elements(p for p in fresh if not p.requires_grad),
        shared=_elements(p for p in parameters if id(p) in counted),
        flops=call.flops,
        saved=call.saved,
        dtype=home.dtype if home is not None else "",
        device=home.device if home is not None else "",
        file=call.file,
        line=call.line,
        data=data,
        gradient=gradient,
    )


def _never_ran(model: nn.Module, trace: ForwardTrace) -> list[ModuleRow]:
    """Modules with parameters that no op has read; only the outermost of nested ones."""
    ran = {id(call.module) for call in trace.calls}
    read = {p for op in trace.ops for p in op.parameters}
    rows: list[ModuleRow] = []
    for path, module in model.named_modules():
        if not path or id(module) in ran or any(path.startswith(f"{row.path}.") for row in rows):
            continue
        parameters = list(module.parameters())
        if not parameters or any(id(p) in read for p in parameters):
            continue
        if not any(id(m) in ran for m in module.modules()):
            rows.append(_idle_row(path, module, parameters))
    return rows


def _idle_row(path: str, module: nn.Module, parameters: list[nn.Parameter]) -> ModuleRow:
    return ModuleRow(
        path=path,
        kind=type(module).__name__,
        depth=1,
        call=0,
        inputs=(),
        outputs=(),
        trainable=_elements(p for p in parameters if p.requires_grad),
        frozen=_elements(p for p in parameters if not p.requires_grad),
        shared=0,
        flops=0,
        saved=0,
        dtype=dtype_name(parameters[0].dtype),
        device=str(parameters[0].device),
    )


def _named(rows: list[ModuleRow], naming: SizeNames | None) -> list[ModuleRow]:
    if naming is None:
        return rows
    names = naming.of_calls()
    return [replace(r, outputs=with_names(r.outputs, names.get((r.path, r.call), []))) for r in rows]


def _folded(rows: list[ModuleRow]) -> list[ModuleRow]:
    parents: list[int | None] = []
    last: dict[int, int] = {}  # depth -> row
    for number, row in enumerate(rows):
        parents.append(last.get(row.depth - 1) if row.ran else None)
        last[row.depth] = number

    def signature(index: int) -> Any:
        row = rows[index]
        shapes = [t.shape for t in (*row.inputs, *row.outputs)]
        name = "" if row.name.isdigit() else row.name
        return (row.kind, name, row.ran, str(shapes), row.trainable, row.frozen, row.shared, row.flops)

    repeats, hidden = fold(Tree(parents, signature), lambda i: rows[i].ran and rows[i].name.isdigit())
    return [replace(r, repeat=repeats.get(i, 1), hidden=i in hidden) for i, r in enumerate(rows)]


def _memory(model: nn.Module, trace: ForwardTrace, optimizer: str) -> NetworkMemory:
    trained = sum(p.nbytes for p in model.parameters() if p.requires_grad)
    return NetworkMemory(
        parameters=sum(p.nbytes for p in model.parameters()),
        gradients=trained,
        optimizer=STATES[optimizer] * trained,
        activations=trace.saved,
        buffers=sum(b.nbytes for b in model.buffers()),
        optimizer_name=_NAMES.get(optimizer, optimizer.replace("adam", "Adam").replace("Adamw", "AdamW")),
    )


def _notes(model: nn.Module, trace: ForwardTrace, naming: SizeNames | None, computing: bool) -> list[str]:
    notes = []
    if trace.computed and not computing:
        notes.append("run with real values, because the forward depends on them")
    if any(p.device.type == "meta" for p in model.parameters()):
        notes.append("the model is on the meta device; traced as if on the CPU")
    if naming is not None and naming.reason:
        notes.append(naming.reason)
    if not any(p.requires_grad for p in model.parameters()) and any(True for _ in model.parameters()):
        notes.append("all parameters are frozen: nothing is kept for backward")
    return notes


def _sizes_text(given: ForwardInputs) -> str:
    return ", ".join(f"{name} = {given.sizes[name]}" for name in given.invented)


def _elements(tensors: Any) -> int:
    return sum(int(t.numel()) for t in tensors)
