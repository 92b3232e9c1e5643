"""The facts that checks read about a traced network, in the vocabulary of recorded runs (docs/signals.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from clew.labs.network.device_literals import CannotTrace, device_literal, may_stay_on_cpu
from clew.labs.network.first_weights import largest_gain, output_spreads, start_fact, weight_norms
from clew.labs.network.network_inputs import ForwardInputs
from clew.labs.network.tensor_info import dtype_name
from clew.labs.network.trace.layer_lines import named_elsewhere, place_of_attribute, places
from clew.labs.network.trace.op_tracer import ForwardTrace
from clew.labs.network.trace.traced_forward import can_compute, without_computing
from clew.labs.network.traced_structure import structure_fact
from clew.records import signals
from clew.records.facts.experiment_facts import DONE
from clew.records.facts.fact import FactInMemory, FactsInMemory
from clew.records.facts.model_facts import (
    GraphFact,
    LayerRow,
    ModelFact,
    ParameterRow,
    ParametersFact,
    WeightRow,
)
from clew.records.facts.network_experiment_facts import DeviceLiteralFact
from clew.records.network import INPUT
from clew.records.site import Site

LARGE = 3.0  # gain of a layer above which a forward with values is worthwhile; usually 0.6 to 1.4
CHEAP = 2e10  # FLOPs of that forward: about a second on one core

NO_VALUES = "the weights have no values"
BY_VALUES = "which parameters are used depends on the input values"
EVALUATING = "in evaluation mode: parameters used only in training are not seen"


@dataclass(frozen=True)
class TracedNetwork:
    """A network and the trace of one forward."""

    model: nn.Module
    given: ForwardInputs
    trace: ForwardTrace


@dataclass
class NetworkFacts(FactsInMemory):
    """A run of no steps, in memory: facts, and signals of one value each."""

    root: str = ""
    signals: dict[str, dict[Site, float]] = field(default_factory=dict)
    unjudged: dict[str, str] = field(default_factory=dict)  # by name of the check, why it can't judge

    def signal_names(self) -> list[str]:
        return list(self.signals)

    def series(self, name: str) -> Iterator[tuple[Site, npt.NDArray[Any], npt.NDArray[Any]]]:
        for site, value in self.signals.get(name, {}).items():
            yield site, np.zeros(1, dtype=np.int64), np.array([value])

    def signal(self, name: str, values: dict[str, float], param: str | None = None) -> None:
        sites = {Site(module=path, root=self.root, param=param): v for path, v in values.items()}
        self.signals.setdefault(name, {}).update(sites)


def collect_facts(traced: TracedNetwork) -> NetworkFacts:
    """All that is known, without the lines that created the layers: `add_places` reads those."""
    notes = NetworkFacts(root=type(traced.model).__name__)
    notes.add(_model(traced, notes.root))
    notes.add(_parameters(traced.model, notes.root))
    _try(notes, ("no-nonlinearity", "redundant-bias", "dropout-misplaced"), _note_structure, traced)
    _try(notes, ("unused-parameter",), _note_reading, traced)
    _try(notes, ("poor-initialisation",), _note_weights, traced)
    _try(notes, ("device-literal",), _note_devices, traced)
    return notes


def add_places(notes: NetworkFacts, model: nn.Module) -> None:
    """The lines that created the model and its layers, from their source."""
    for note in notes.facts:
        if not isinstance(note, FactInMemory):
            continue
        if isinstance(note.fact, ModelFact):
            note.fact = _with_places(note.fact, model)
        elif isinstance(note.fact, DeviceLiteralFact):
            note.fact = _with_place(note.fact, model)


def _with_places(fact: ModelFact, model: nn.Module) -> ModelFact:
    found = places(model)
    layers = []
    for layer in fact.layers:
        file, line = found.get(layer.path, (None, None))
        layers.append(replace(layer, file=file, line=line))
    file, line = found[""]
    return replace(fact, file=file, line=line, layers=tuple(layers))


def _with_place(fact: DeviceLiteralFact, model: nn.Module) -> DeviceLiteralFact:
    """A tensor that the forward creates has its line already; one in an attribute gets it here."""
    tensor = fact.device
    if tensor is None or tensor.module is None or not tensor.held:
        return fact
    file, line = place_of_attribute(model.get_submodule(tensor.module), tensor.held)
    return replace(fact, device=replace(tensor, file=file, line=line))


def _try(
    notes: NetworkFacts,
    checks: tuple[str, ...],
    note: Callable[[NetworkFacts, TracedNetwork], None],
    traced: TracedNetwork,
) -> None:
    """A network that surprises Clew is still shown."""
    try:
        note(notes, traced)
    except Exception as error:  # noqa: BLE001 - what can't be determined is not judged
        text = (str(error).splitlines() or [""])[0][:120]
        notes.unjudged.update(dict.fromkeys(checks, f"{type(error).__name__}: {text}"))


def _model(traced: TracedNetwork, root: str) -> ModelFact:
    by_path = dict(traced.model.named_modules())
    ran = [call.path for call in traced.trace.calls if call.path in by_path]
    return ModelFact(
        root=root,
        kind=type(traced.model).__name__,
        layers=tuple(
            LayerRow(path, type(by_path[path]).__name__) for path in dict.fromkeys([*ran, *by_path])
        ),
        parameters=tuple(_weight(name, p) for name, p in traced.model.named_parameters()),
    )


def _weight(name: str, parameter: nn.Parameter) -> WeightRow:
    return WeightRow(
        **_named(name),
        shape=tuple(parameter.shape),
        dtype=dtype_name(parameter.dtype),
        requires_grad=parameter.requires_grad,
        numel=parameter.numel(),
    )


def _parameters(model: nn.Module, root: str) -> ParametersFact:
    """Gradients, optimizers and how the weights were initialised are not known."""
    items = tuple(
        ParameterRow(**_named(name), ndim=p.dim(), requires_grad=p.requires_grad)
        for name, p in model.named_parameters()
    )
    return ParametersFact(root=root, items=items, training=model.training)


def _named(name: str) -> dict[str, Any]:
    module, _, param = name.rpartition(".")
    return {"name": name, "module": module, "param": param}


def _note_structure(notes: NetworkFacts, traced: TracedNetwork) -> None:
    notes.add(structure_fact(traced.trace, notes.root))


def _note_reading(notes: NetworkFacts, traced: TracedNetwork) -> None:
    fact = _graph_fact(traced.model, traced.trace, notes.root)
    if fact.idle and traced.trace.computed:
        given = traced.given
        if without_computing(traced.model, given.args, given.kwargs).error is not None:
            notes.unjudged["unused-parameter"] = BY_VALUES
            return
    if fact.idle and not traced.model.training:
        notes.unjudged["unused-parameter"] = EVALUATING
        return
    notes.add(fact)


def _graph_fact(model: nn.Module, trace: ForwardTrace, root: str) -> GraphFact:
    """Which parameters some op reads, and which none does; nothing is known about gradients."""
    read = {p for op in trace.ops for p in op.parameters}
    given_back = {t.shape for t, op in zip(trace.outputs, trace.makers, strict=True) if op == INPUT}
    idle = [
        name
        for name, parameter in model.named_parameters()
        if parameter.requires_grad
        and id(parameter) not in read
        and tuple(parameter.shape) not in given_back  # it may be part of the result as it is
        and not _is_scripted(model, name)
    ]
    return GraphFact(
        root=root,
        reached=len(read),
        idle=tuple(idle),
        forward_only=True,
        named=tuple(name for name in idle if _is_mentioned(model, trace, name)),
    )


def _is_scripted(model: nn.Module, name: str) -> bool:
    """TorchScript reads its modules' weights where their owner is not visible."""
    return any(isinstance(m, torch.jit.ScriptModule) for m, _ in _path_to(model, name))


def _is_mentioned(model: nn.Module, trace: ForwardTrace, name: str) -> bool:
    """Whether the code mentions the owner of a parameter: a discriminator outside the forward, say."""
    ran = {id(call.module) for call in trace.calls}
    holder, attribute = model, name
    for module, below in _path_to(model, name):
        if not below.isdigit() and not type(module).__module__.startswith("torch."):
            holder, attribute = module, below
        inner = getattr(module, below, None)
        if isinstance(inner, nn.Module) and id(inner) not in ran and not below.isdigit():
            break
    return named_elsewhere(type(holder), attribute)


def _path_to(model: nn.Module, name: str) -> list[tuple[nn.Module, str]]:
    """The modules on the path to a parameter, each with the attribute that leads on."""
    path: list[tuple[nn.Module, str]] = []
    module: Any = model
    for part in name.split("."):
        path.append((module, part))
        module = getattr(module, part, None)
        if not isinstance(module, nn.Module):
            break
    return path


def _note_weights(notes: NetworkFacts, traced: TracedNetwork) -> None:
    model, given = traced.model, traced.given
    if not can_compute(model, given.args, given.kwargs):
        notes.unjudged["poor-initialisation"] = NO_VALUES
        return
    norms = weight_norms(traced.trace)
    notes.signal(signals.WEIGHT.norm.name, norms, "weight")
    notes.add(start_fact(traced.trace, notes.root))
    if largest_gain(traced.trace, norms) > LARGE:
        if traced.trace.calls[0].flops <= CHEAP:
            notes.signal(signals.ACTIVATION.std.name, output_spreads(model, given))
        else:
            notes.unjudged["poor-initialisation"] = "a forward with real values would take too long"


def _note_devices(notes: NetworkFacts, traced: TracedNetwork) -> None:
    if any(t.device != "cpu" for op in traced.trace.ops for t in op.outputs):
        notes.unjudged["device-literal"] = "it already runs on another device"
        return
    place = None
    if may_stay_on_cpu(traced.model, traced.trace):
        try:
            place = device_literal(traced.model, traced.given, notes.root)
        except CannotTrace as reason:
            notes.unjudged["device-literal"] = str(reason)
            return
    notes.add(DeviceLiteralFact(status=DONE, models=1, device=place))
