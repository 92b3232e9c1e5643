"""The optimizers of a program: what they update, and whether their gradients are clean and finite."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from clew.hooks.collect_layers.trained_models import ModelBook, ParameterName
from clew.hooks.entry.sink import Sink
from clew.measure.gradient_norm import Addresses, GradientNorm
from clew.measure.readable_tensors import has_values
from clew.records import signals
from clew.records.facts.step_facts import OptimizerFact, OptimizerGroup
from clew.records.signal_types import names
from clew.records.site import Site

SOUNDNESS_SIGNALS = names(signals.GRAD_STALE, signals.GRAD_BACKWARDS)
MOST_GROUPS = 8


@dataclass
class OptimizerState:
    """What is known of one optimizer between its steps."""

    index: int
    optimizer: weakref.ref[Optimizer]
    named: list[tuple[Tensor, ParameterName]]
    params: list[Tensor]
    groups: int
    norm: GradientNorm  # over all gradients about to be used
    weights: Addresses
    steps: int = 0
    backwards: int = 0  # since its last step
    dirty: bool = False  # gradients of the last step still exist
    witness: tuple[Tensor, int, int] | None = None  # a parameter, its gradient's id and version
    table: int | None = None
    rates: int | None = None  # table for steps whose gradients cannot be read
    soundness: int | None = None
    site: Site | None = None
    uses_closure: bool = False

    @property
    def place(self) -> Site:
        """The line of the `step()` call."""
        return self.site or Site(op="step", phase="train")


class OptimizerBook:
    """All optimizers seen, and the signals of each of their steps."""

    def __init__(self, sink: Sink, models: ModelBook) -> None:
        self._sink = sink
        self._models = models
        self.states: list[OptimizerState] = []
        self.created: list[weakref.ref[Optimizer]] = []
        self.by_id: dict[int, OptimizerState] = {}
        self._counts = (0, 0)
        self._unused = 0
        self._unclaimed = 0  # backwards since any step: what an optimizer finds at its first step

    def note_created(self, optimizer: Optimizer) -> None:
        self.created = [ref for ref in self.created if ref() is not None]
        self.created.append(weakref.ref(optimizer))

    def without_a_step(self) -> int:
        """How many optimizers have been created and not used yet."""
        counts = (len(self.created), len(self.states))
        if counts != self._counts:
            stepped = {id(state.optimizer()) for state in self.states}
            self._counts = counts
            self._unused = sum(id(ref()) not in stepped for ref in self.created if ref() is not None)
        return self._unused

    def find_existing(self) -> None:
        """Find optimizers that were created before Clew was attached."""
        if not self.created:
            # By type: an object's `__class__` may be a property with side effects.
            for thing in gc.get_objects():
                if issubclass(type(thing), Optimizer):
                    self.note_created(thing)

    def state_of(self, optimizer: Optimizer) -> OptimizerState:
        """The state of an optimizer; renewed when parameters were added to it."""
        state = self.by_id.get(id(optimizer))
        if state is None or state.optimizer() is not optimizer:
            nothing = GradientNorm([]), Addresses([], gradients=False)
            state = OptimizerState(len(self.states), weakref.ref(optimizer), [], [], 0, *nothing)
            state.backwards = self._unclaimed
            self.states.append(state)
            self.by_id[id(optimizer)] = state
        if state.groups != len(optimizer.param_groups):
            self._learn(state, optimizer)
        return state

    def _learn(self, state: OptimizerState, optimizer: Optimizer) -> None:
        state.groups = len(optimizer.param_groups)
        state.table = state.rates = None
        state.params = [p for group in optimizer.param_groups for p in group["params"]]
        state.named = [
            (p, self._models.introduce(p, f"params[{number}]")) for number, p in enumerate(state.params)
        ]
        state.norm = GradientNorm(state.params)
        state.weights = Addresses(state.params, gradients=False)

    def exists(self, index: int) -> bool:
        """Whether the program still has this optimizer."""
        return self.states[index].optimizer() is not None

    def rename(self) -> None:
        """A new root module may have named parameters that had no name."""
        for state in self.states:
            state.named = [(p, self._models.name_of(p) or name) for p, name in state.named]

    def fact(self, state: OptimizerState) -> OptimizerFact | None:
        """The optimizer's configuration."""
        optimizer = state.optimizer()
        if optimizer is None:
            return None
        file, line = self._models.where_made(optimizer)
        known = {id(p): name.full for p, name in state.named}
        groups = [
            OptimizerGroup(
                lr=float(group.get("lr", float("nan"))),
                weight_decay=float(group.get("weight_decay", 0.0) or 0.0),
                params=tuple(known.get(id(p), "?") for p in group["params"]),
            )
            for group in optimizer.param_groups
        ]
        return OptimizerFact(
            index=state.index,
            kind=type(optimizer).__name__,
            file=file,
            line=line,
            groups=tuple(groups),
            closure=state.uses_closure,
            implementation=implementation(optimizer),
        )

    def write(self, state: OptimizerState, rates: Sequence[Any], step: int, norm: float) -> None:
        """Write what is recorded of every optimizer step."""
        table, groups = self.table_of(state)
        self._sink.row(table, step, (norm, *map(float, rates[:groups])))

    def table_of(self, state: OptimizerState) -> tuple[int, int]:
        """The table of the gradient norm and the rate of each group, and the number of groups in it."""
        groups = min(state.groups, MOST_GROUPS)
        if state.table is None:
            state.table = self._table(state, [signals.GRAD_NORM.name, *_rate_names(groups)])
        return state.table, groups

    def write_rates(self, state: OptimizerState, rates: Sequence[Any], step: int) -> None:
        """Same as `write` for a step whose gradients cannot be read: the norm is left out, not NaN."""
        rates = rates[:MOST_GROUPS]
        if state.rates is None:
            state.rates = self._table(state, _rate_names(len(rates)))
        self._sink.row(state.rates, step, tuple(map(float, rates)))

    def _table(self, state: OptimizerState, recorded: list[str]) -> int:
        return self._sink.table(recorded, [self._sink.site(state.place)])

    def write_soundness(self, state: OptimizerState, step: int) -> None:
        """Write what is recorded on sampled steps: whether old gradients are among those used."""
        stale = state.dirty and state.backwards > 0 and state.steps > 0
        if state.soundness is None:
            site = self._sink.site(state.place)
            state.soundness = self._sink.table(SOUNDNESS_SIGNALS, [site])
        self._sink.row(state.soundness, step, (float(stale), float(state.backwards)))

    # -- does backward() add to an old gradient? --

    def after_step(self, state: OptimizerState) -> None:
        """Remember one non-zero gradient that must be gone before the next backward."""
        state.steps += 1
        self._unclaimed = 0
        state.backwards = 0
        state.dirty = False
        state.witness = self._witness(state)
        state.dirty = state.witness is not None

    def _witness(self, state: OptimizerState) -> tuple[Tensor, int, int] | None:
        previous = state.witness
        if previous is not None and previous[0].grad is not None:
            return (previous[0], id(previous[0].grad), previous[0].grad._version)
        candidates = [p for p in state.params if p.grad is not None and has_values(p.grad)]
        for parameter in sorted(candidates, key=Tensor.numel)[:4]:
            gradient = parameter.grad
            if gradient is not None and bool((gradient != 0).any()):
                return (parameter, id(gradient), gradient._version)
        return None

    def find_cleared(self) -> None:
        """Check whether the old gradients were cleared, by `zero_grad()` or by hand."""
        for state in self.states:
            if state.dirty and state.witness is not None and was_cleared(*state.witness):
                self._clean(state, state.witness[0])

    @staticmethod
    def _clean(state: OptimizerState, parameter: Tensor) -> None:
        """Forget the old gradient's id, too: a new one may be allocated at the same address."""
        state.dirty = False
        state.backwards = 0
        state.witness = (parameter, 0, 0)

    def after_backward(self) -> None:
        """Count a backward for every optimizer whose gradients it touched."""
        self._unclaimed += 1
        for state in self.states:
            if state.witness is None:
                state.backwards += 1
                continue
            parameter, identity, version = state.witness
            gradient = parameter.grad
            if gradient is not None and (id(gradient), gradient._version) != (identity, version):
                state.backwards += 1
                if state.dirty:
                    state.witness = (parameter, id(gradient), gradient._version)


def rates_of(optimizer: Optimizer) -> list[Any]:
    """The learning rates of its groups."""
    return [group.get("lr", 0.0) for group in optimizer.param_groups]


def _rate_names(groups: int) -> list[str]:
    return [signals.LR.name, *(signals.LR_GROUP.member(n) for n in range(1, groups))]


def was_cleared(parameter: Tensor, identity: int, version: int) -> bool:
    """Whether a parameter's gradient is no longer the one with this id and version, but zero."""
    gradient = parameter.grad
    if gradient is None or id(gradient) != identity:
        return True
    if gradient._version == version:
        return False
    # Written to since. Reading it on an accelerator would make the host wait, so assume that it was cleared.
    return gradient.device.type != "cpu" or not bool((gradient != 0).any())


def is_finite(value: float) -> bool:
    return value - value == 0.0


def implementation(optimizer: Optimizer) -> str:
    """How it iterates over its parameters: `fused`, `foreach`, `for-loop`, or `own` code."""
    group: dict[str, Any] = optimizer.param_groups[0] if optimizer.param_groups else {}
    if not type(optimizer).__module__.startswith("torch."):
        return "own"
    if group.get("fused"):
        return "fused"
    asked, params = group.get("foreach"), group.get("params") or [torch.empty(0)]
    if asked is None:  # torch's own choice: foreach, but not on a CPU
        asked = "foreach" in group and not params[0].is_cpu
    return "foreach" if asked else "for-loop"
