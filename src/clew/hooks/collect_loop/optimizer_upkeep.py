"""Optimizer use: how often each optimizer stepped, and which models' parameters it has."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from clew.hooks.collect_layers.trained_models import ModelBook, unwrap
from clew.hooks.collect_loop.optimizers import OptimizerBook
from clew.hooks.entry.sink import Sink
from clew.measure.readable_tensors import has_values
from clew.records.facts.step_facts import OptimizerUseFact

SMALL = 4096  # elements of a parameter that is copied to see whether anything changes it
WITNESSES = 8  # such parameters per optimizer
RECENT = 3  # sampled steps within which a model in use has run


class Upkeep:
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

    def step_begins(self, _step: int) -> None:
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
