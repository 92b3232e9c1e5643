"""The user's whole training step on a snapshot, run repeatedly in different variants.

Inside a snapshot of the subject (see `step_snapshot.py`): parameters, buffers, optimizers and random
generators start from the same state in every half that is timed, and are put back at the end.
"""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from clew.labs.snapshot.step_batch import StepBatch
from clew.labs.snapshot.step_snapshot import StepSnapshot, TrainingState, cloned_optimizer
from clew.labs.snapshot.subject import Subject

SLOW = 0.5  # seconds of a step from which none is made just to warm up

Around = Callable[[], AbstractContextManager[Any]]


def as_given(batch: StepBatch) -> StepBatch:
    """The batch as it is."""
    return batch


def unchanged(optimizer: Optimizer) -> None:
    """The optimizer as it is."""


@dataclass(frozen=True)
class StepWay:
    """One way of making the step: what is different from the program's own."""

    change: Callable[[Optimizer], None] = unchanged  # made to a clone of each optimizer
    around: Around = contextlib.nullcontext  # a stretch of steps
    within: Around = contextlib.nullcontext  # from the batch to the loss of one step
    feed: Callable[[StepBatch], StepBatch] = as_given
    set_to_none: bool = True  # what zero_grad does with gradients


@dataclass
class Trainee:
    """The program in a snapshot: makes steps in some way."""

    subject: Subject
    snapshot: StepSnapshot
    now: Callable[[], float] = perf_counter
    _base: TrainingState = field(init=False)
    _parameters: list[nn.Parameter] = field(init=False)

    def __post_init__(self) -> None:
        self._base = TrainingState.take(list(self.subject.models.values()), self.subject.optimizers)
        self._parameters = self.subject.parameters()

    def start(self, way: StepWay, seed: int = 0) -> list[Optimizer]:
        """All as before the first step; clones of the optimizers to go on with."""
        self._base.put()
        for tensor, _ in self._base.tensors:
            tensor.grad = None
        clones = [cloned_optimizer(o) for o in self.snapshot.optimizers]
        for clone in clones:
            way.change(clone)
        self.snapshot.seed(seed)
        return clones

    def step(self, batch: StepBatch, way: StepWay, optimizers: Sequence[Optimizer]) -> Tensor:
        """From clearing the gradients to the update; gives the loss."""

        def closure() -> Tensor:
            for optimizer in optimizers:
                optimizer.zero_grad(set_to_none=way.set_to_none)
            with way.within():
                loss = self.snapshot.loss(way.feed(batch))
            loss.backward()
            if self.subject.clip is not None:
                nn.utils.clip_grad_norm_(self._parameters, self.subject.clip)
            return loss.detach()

        if len(optimizers) == 1 and type(optimizers[0]).__name__ == "LBFGS":
            stepped: Any = optimizers[0].step
            return torch.as_tensor(stepped(closure))
        loss = closure()
        for optimizer in optimizers:
            optimizer.step()
        return loss

    def half(self, way: StepWay, batches: Sequence[StepBatch], steps: int, *, warm: bool = True) -> float:
        """Seconds of a middling step among so many, from the first state on."""
        with way.around():
            optimizers = self.start(way)
            if warm:
                self.step(batches[0], way, optimizers)
            taken = []
            for number in range(steps):
                began = self.now()
                self.step(batches[number % len(batches)], way, optimizers)
                taken.append(self.now() - began)
        return statistics.median(taken)


@contextlib.contextmanager
def trainee(subject: Subject) -> Iterator[Trainee]:
    """Everything that is tried happens in here; afterwards nothing has happened."""
    subject.need_step()
    subject.batch()
    with subject.snapshot() as snapshot:
        yield Trainee(subject, snapshot)
