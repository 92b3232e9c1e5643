"""The facts that checks read about a traced network, in the vocabulary of recorded runs (docs/signals.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import nn

from clew.labs.network.device_literals import Unfollowed, device_literal, may_be_bound, place_of
from clew.labs.network.first_weights import largest_gain, output_spreads, start_fact, weight_norms
from clew.labs.network.network_inputs import Feed
from clew.labs.network.trace.layer_lines import place_of_attribute, places
from clew.labs.network.trace.op_tracer import ForwardTrace
from clew.labs.network.trace.traced_forward import can_compute, without_computing
from clew.labs.network.traced_structure import structure_fact
from clew.labs.network.unread_parameters import graph_fact
from clew.records import signals
from clew.records.facts.experiment_facts import DONE, DeviceLiteralFact
from clew.records.facts.fact import TypedFact
from clew.records.facts.model_facts import LayerRow, ModelFact, ParameterRow, ParametersFact, WeightRow
from clew.records.site import Site

LARGE = 3.0  # gain of a layer above which it is worth a forward with values; the usual ones are 0.6 to 1.4
CHEAP = 2e10  # FLOPs of that forward: about a second on one core

NO_VALUES = "the weights have no values"
BY_VALUES = "which parameters are used depends on the input values"
EVALUATING = "in evaluation mode: parameters used only in training are not seen"


@dataclass(frozen=True)
class ForwardLook:
    """A network and what was seen of one forward."""

    model: nn.Module
    given: Feed
    trace: ForwardTrace


@dataclass(frozen=True)
class NetworkFact:
    kind: str
    data: dict[str, Any]
    step: int = 0


@dataclass
class NetworkFacts:
    """A run of no steps, in memory: facts, and signals of one value each."""

    root: str
    facts: list[NetworkFact] = field(default_factory=list)
    events: tuple[NetworkFact, ...] = ()
    last_step: int = -1
    end: dict[str, Any] | None = None
    signals: dict[str, dict[Site, float]] = field(default_factory=dict)
    unjudged: dict[str, str] = field(default_factory=dict)  # by name of the check, why it can't say anything

    def signal_names(self) -> list[str]:
        return list(self.signals)

    def series(self, name: str) -> Iterator[tuple[Site, npt.NDArray[Any], npt.NDArray[Any]]]:
        for site, value in self.signals.get(name, {}).items():
            yield site, np.zeros(1, dtype=np.int64), np.array([value])

    def add(self, fact: TypedFact) -> None:
        self.facts.append(NetworkFact(fact.fact_kind, fact.to_json()))

    def signal(self, name: str, values: dict[str, float], param: str | None = None) -> None:
        sites = {Site(module=path, root=self.root, param=param): v for path, v in values.items()}
        self.signals.setdefault(name, {}).update(sites)


def notes_of(look: ForwardLook) -> NetworkFacts:
    """All that is known, without the lines that made the layers: `add_places` reads those."""
    notes = NetworkFacts(type(look.model).__name__)
    notes.add(_model(look, notes.root))
    notes.add(_parameters(look.model, notes.root))
    _try(notes, ("no-nonlinearity", "redundant-bias", "dropout-misplaced"), _note_structure, look)
    _try(notes, ("unused-parameter",), _note_reading, look)
    _try(notes, ("poor-initialisation",), _note_weights, look)
    _try(notes, ("device-literal",), _note_devices, look)
    return notes


def add_places(notes: NetworkFacts, model: nn.Module) -> None:
    """The lines that made the model and its layers, from their source."""
    found = places(model)
    for note in notes.facts:
        if note.kind == ModelFact.fact_kind:
            note.data["file"], note.data["line"] = found[""]
            for row in note.data["modules"]:
                row["file"], row["line"] = found.get(row["path"], (None, None))
        elif note.kind == DeviceLiteralFact.fact_kind:
            place = note.data["data"]["device"]
            if place is not None and place["held"]:
                owner = model.get_submodule(place["module"])
                place["file"], place["line"] = place_of_attribute(owner, place["held"])


def _try(
    notes: NetworkFacts,
    checks: tuple[str, ...],
    note: Callable[[NetworkFacts, ForwardLook], None],
    look: ForwardLook,
) -> None:
    """A network that is stranger than we thought is still shown."""
    try:
        note(notes, look)
    except Exception as error:  # noqa: BLE001 - what can't be told is not judged
        told = (str(error).splitlines() or [""])[0][:120]
        notes.unjudged.update(dict.fromkeys(checks, f"{type(error).__name__}: {told}"))


def _model(look: ForwardLook, root: str) -> ModelFact:
    by_path = dict(look.model.named_modules())
    ran = [call.path for call in look.trace.calls if call.path in by_path]
    return ModelFact(
        root=root,
        kind=type(look.model).__name__,
        layers=tuple(
            LayerRow(path, type(by_path[path]).__name__) for path in dict.fromkeys([*ran, *by_path])
        ),
        parameters=tuple(_weight(name, p) for name, p in look.model.named_parameters()),
    )


def _weight(name: str, parameter: nn.Parameter) -> WeightRow:
    return WeightRow(
        **_named(name),
        shape=tuple(parameter.shape),
        dtype=str(parameter.dtype).removeprefix("torch."),
        requires_grad=parameter.requires_grad,
        numel=parameter.numel(),
    )


def _parameters(model: nn.Module, root: str) -> ParametersFact:
    """Of gradients, optimizers and how the weights were made nothing is known."""
    items = tuple(
        ParameterRow(**_named(name), ndim=p.dim(), requires_grad=p.requires_grad)
        for name, p in model.named_parameters()
    )
    return ParametersFact(root=root, items=items, training=model.training)


def _named(name: str) -> dict[str, Any]:
    module, _, param = name.rpartition(".")
    return {"name": name, "module": module, "param": param}


def _note_structure(notes: NetworkFacts, look: ForwardLook) -> None:
    notes.add(structure_fact(look.trace, notes.root))


def _note_reading(notes: NetworkFacts, look: ForwardLook) -> None:
    fact = graph_fact(look.model, look.trace, notes.root)
    if fact.idle and look.trace.computed:
        given = look.given
        if without_computing(look.model, given.args, given.kwargs).error is not None:
            notes.unjudged["unused-parameter"] = BY_VALUES
            return
    if fact.idle and not look.model.training:
        notes.unjudged["unused-parameter"] = EVALUATING
        return
    notes.add(fact)


def _note_weights(notes: NetworkFacts, look: ForwardLook) -> None:
    model, given = look.model, look.given
    if not can_compute(model, given.args, given.kwargs):
        notes.unjudged["poor-initialisation"] = NO_VALUES
        return
    norms = weight_norms(look.trace)
    notes.signal(signals.WEIGHT.norm.name, norms, "weight")
    notes.add(start_fact(look.trace, notes.root))
    if largest_gain(look.trace, norms) > LARGE:
        if look.trace.calls[0].flops <= CHEAP:
            notes.signal(signals.ACTIVATION.std.name, output_spreads(model, given))
        else:
            notes.unjudged["poor-initialisation"] = "a forward with real values would take long"


def _note_devices(notes: NetworkFacts, look: ForwardLook) -> None:
    if any(t.device != "cpu" for op in look.trace.ops for t in op.outputs):
        notes.unjudged["device-literal"] = "it already runs on another device"
        return
    place = None
    if may_be_bound(look.model, look.trace):
        try:
            found = device_literal(look.model, look.given)
        except Unfollowed as reason:
            notes.unjudged["device-literal"] = str(reason)
            return
        place = None if found is None else place_of(found, notes.root)
    data = {"models": 1, "device": place, "dtype": None}
    notes.add(DeviceLiteralFact(status=DONE, data=data))
