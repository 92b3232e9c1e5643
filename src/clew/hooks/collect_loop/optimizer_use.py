"""Optimizer use: how often each optimizer stepped, and whether it used the gradients of each backward."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from clew.hooks.collect_layers.trained_models import ModelBook, unwrap
from clew.hooks.collect_loop.optimizers import OptimizerBook, OptimizerState, was_cleared
from clew.hooks.entry.sink import Sink
from clew.measure.readable_tensors import has_values
from clew.records import signals
from clew.records.facts.step_facts import OptimizerUseFact

SMALL = 4096  # elements of a parameter that is copied to see whether it has changed

WITNESSES = 8  # such parameters per optimizer
RECENT = 3  # sampled steps within which a model in use has run


@dataclass
class Witness:
    """One parameter of an optimizer, as the last backward left it."""

    parameter: Tensor
    identity: int  # id of its gradient
    version: int
    own_version: int  # of the parameter itself
    before: Tensor | None  # a copy of the parameter's values, if that is cheap

    def moved(self) -> bool:
        """Whether the parameter was changed since, by hand."""
        if self.parameter._version != self.own_version:
            return True
        return self.before is not None and not torch.equal(self.before, self.parameter.detach())

    def differs_from(self, before: Witness | None) -> bool:
        """Whether its gradient is another one, or was written to."""
        return before is None or (self.identity, self.version) != (before.identity, before.version)


@dataclass
class Backward:
    """A backward whose gradients have not been used yet."""

    touched: set[int]  # optimizers that could still use it
    for_inputs: bool  # gradients of the inputs were requested: an attack, a penalty


@dataclass
class GradientTally:
    """What happened to one optimizer's gradients since its last step."""

    witness: Witness | None = None
    fresh: bool = False  # a backward has filled them, and they are not used yet
    lost: int = 0
    moved: bool = False  # weights changed between backward and clearing: the gradients were used by hand


@dataclass
class UsedGradients:
    """Counts, for each optimizer step, the backwards whose gradients were not used.

    Read on sampled steps, through one small parameter of each optimizer.
    """

    sink: Sink
    optimizers: OptimizerBook
    _open: list[Backward] = field(default_factory=list)
    _tallies: dict[int, GradientTally] = field(default_factory=dict)
    _tables: dict[int, int] = field(default_factory=dict)

    def restart(self) -> None:
        """A step begins; what is still open belongs to the previous one."""
        self._open = []
        self._tallies = {state.index: GradientTally(_witness(state)) for state in self.optimizers.states}

    def after_backward(self, for_inputs: bool) -> None:
        """A backward has filled gradients: find out of which optimizers."""
        touched = set()
        for state in self.optimizers.states:
            tally = self._tallies.setdefault(state.index, GradientTally())
            now = _witness(state, tally.witness)
            if now is not None and now.differs_from(tally.witness):
                touched.add(state.index)
                tally.witness, tally.fresh = now, True
        if touched:
            self._open.append(Backward(touched, for_inputs))

    def find_cleared(self) -> None:
        """Check whether a gradient was cleared that no step has used."""
        for index, tally in self._tallies.items():
            seen = tally.witness
            if seen is None or not was_cleared(seen.parameter, seen.identity, seen.version):
                continue
            tally.witness = None
            if tally.fresh:
                tally.fresh = False
                tally.moved = tally.moved or seen.moved()
                self._forget(index, tally)

    def _forget(self, index: int, tally: GradientTally) -> None:
        for backward in self._open:
            if index in backward.touched:
                backward.touched.discard(index)
                tally.lost += not backward.touched and not backward.for_inputs
        self._open = [backward for backward in self._open if backward.touched]

    def stepped(self, state: OptimizerState, step: int) -> None:
        """The optimizer stepped, and has used the gradients that existed."""
        self.find_cleared()
        tally = self._tallies.get(state.index, GradientTally())
        self._open = [backward for backward in self._open if state.index not in backward.touched]
        lost = 0 if tally.moved or self._set_by_hand(tally) else tally.lost
        wanted = [p for p in state.params if p.requires_grad]
        present = sum(p.grad is not None for p in wanted) / max(len(wanted), 1)
        table = self._tables.get(state.index)
        if table is None:
            site = self.sink.site(state.place)
            table = self._tables[state.index] = self.sink.table(
                [signals.GRAD_LOST.name, signals.GRAD_PRESENT.name], [site]
            )
        self.sink.row(table, step, (float(lost), present))
        self._tallies[state.index] = GradientTally(_witness(state))

    @staticmethod
    def _set_by_hand(tally: GradientTally) -> bool:
        """Whether the used gradient is not the one that the last backward left."""
        seen = tally.witness
        if seen is None:
            return False
        gradient = seen.parameter.grad
        return gradient is not None and id(gradient) != seen.identity


def _witness(state: OptimizerState, before: Witness | None = None) -> Witness | None:
    """The smallest parameter with a gradient, which is cheapest to read; or the previous one."""
    if before is not None:
        parameter: Tensor | None = before.parameter
    else:
        found = [p for p in state.params if p.grad is not None and not p.grad.is_sparse]
        parameter = min(found, key=Tensor.numel, default=None)
    if parameter is None or parameter.grad is None:
        return None
    gradient = parameter.grad
    return Witness(parameter, id(gradient), gradient._version, parameter._version, _copied(parameter))


def _copied(parameter: Tensor) -> Tensor | None:
    if not parameter.is_cpu or parameter.numel() > SMALL or not has_values(parameter):
        return None
    return parameter.detach().clone()


class OptimizerUse:
    """The `optimizer_use` facts."""

    def __init__(self, sink: Sink, models: ModelBook, optimizers: OptimizerBook) -> None:
        self._sink = sink
        self._models = models
        self._optimizers = optimizers
        self._sent: dict[int, Any] = {}
        self._witnesses: dict[int, list[tuple[Tensor, Tensor]]] = {}
        self._ran: dict[int, int] = {}  # root module -> sampled step in which it was last trained
        self._steps = 0
        self.backwards = 0
        self.unscaled = 0  # times that a GradScaler was about to step: it may have skipped the step

    def trained(self, roots: list[int]) -> None:
        """A backward follows forwards of these root modules."""
        self.backwards += 1
        for index in roots:
            self._ran[index] = self._steps
        if self.backwards == 1:
            for optimizer in self._alive():
                self._witness(optimizer)

    def step_begins(self) -> None:
        self._steps += 1

    def _witness(self, optimizer: Optimizer) -> list[tuple[Tensor, Tensor]]:
        """A few small parameters with their values at the first backward."""
        known = self._witnesses.get(id(optimizer))
        if known is None:
            held = (p for group in optimizer.param_groups for p in group["params"] if p.requires_grad)
            small = [p for p in held if p.is_cpu and 0 < p.numel() <= SMALL and has_values(p)]
            known = self._witnesses[id(optimizer)] = [(p, p.detach().clone()) for p in small[:WITNESSES]]
        return known

    def _alive(self) -> list[Optimizer]:
        states = [state.optimizer() for state in self._optimizers.states]
        made = [reference() for reference in self._optimizers.created]
        return list({id(o): o for o in (*states, *made) if o is not None}.values())

    def report(self, step: int) -> None:
        """Write the facts that have changed."""
        in_use = self._parameters_in_use()
        for optimizer in self._alive():
            fact = self._fact(optimizer, in_use)
            if self._sent.get(id(optimizer)) != fact:
                self._sent[id(optimizer)] = fact
                fact.write(self._sink, step)

    def _parameters_in_use(self) -> set[int]:
        found: set[int] = set()
        for root in self._models.roots:
            top = root.module()
            if top is not None and self._ran.get(root.index, -RECENT) > self._steps - RECENT:
                found |= {id(p) for p in unwrap(top).parameters()}
        return found

    def _fact(self, optimizer: Optimizer, in_use: set[int]) -> OptimizerUseFact:
        state = next((s for s in self._optimizers.states if s.optimizer() is optimizer), None)
        held = [p for group in optimizer.param_groups for p in group["params"] if p.requires_grad]
        file, line = self._models.where_made(optimizer)
        outside = [p for p in held if id(p) not in in_use]
        witnesses = self._witness(optimizer)
        return OptimizerUseFact(
            index=state.index if state is not None else None,
            kind=type(optimizer).__name__,
            file=file,
            line=line,
            stepped=state is not None and state.site is not None,
            held=len(held),
            with_grad=sum(p.grad is not None for p in held),
            outside=len(outside),
            outside_with_grad=sum(p.grad is not None for p in outside),
            shared=self._shared(optimizer, held),
            changed=any(not torch.equal(p.detach(), before) for p, before in witnesses),
            backwards=self.backwards,
            unscaled=self.unscaled,
        )

    def _shared(self, optimizer: Optimizer, held: list[Tensor]) -> bool:
        """Whether an optimizer that did step has some of the same parameters."""
        own = {id(p) for p in held}
        return any(
            id(p) in own for s in self._optimizers.states if s.optimizer() is not optimizer for p in s.params
        )
