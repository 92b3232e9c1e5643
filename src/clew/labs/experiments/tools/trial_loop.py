"""The training loop that a fix is tried in: as the program runs it, or with one thing changed."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from clew.labs.snapshot.step_batch import StepBatch
from clew.labs.snapshot.step_snapshot import StepSnapshot
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import Clock

Around = Callable[[], contextlib.AbstractContextManager[Any]]
JUDGED = 4  # batches on which the loss is measured at the end


@dataclass(frozen=True)
class TrialLoop:
    """How the steps are run; the user's own code from batch to loss is in the middle of each."""

    zero: bool = True  # gradients are cleared before a step's first backward
    every: int = 1  # backwards per step
    keeps: bool = True  # with several backwards: their gradients add up (False: only the last one counts)
    divide: bool = True  # with several backwards: the loss is divided by their number
    rate: float = 1.0  # factor of the learning rate
    clip: float | None = None  # norm to clip to; None: as the program does
    fresh: bool = False  # newly drawn weights
    full_precision: bool = False  # no autocast
    prepare: tuple[Callable[[StepSnapshot], None], ...] = ()  # changes of modules and optimizer
    feed: Callable[[Sequence[StepBatch], int], Sequence[StepBatch]] | None = (
        None  # samples in different batches, by seed
    )
    see: Callable[[Sequence[StepBatch]], Sequence[StepBatch]] | None = None  # changes to the model's inputs
    around: Around = field(default=contextlib.nullcontext)  # in which the loss is computed

    def with_change(self, change: Callable[[StepSnapshot], None]) -> TrialLoop:
        return replace(self, prepare=(*self.prepare, change))


def ends_at(
    subject: Subject, loop: TrialLoop, measured_as: TrialLoop, steps: int, seed: int, clock: Clock
) -> float:
    """The mean loss after this many steps, measured on the samples and in the way of another loop."""
    with subject.snapshot(seed=seed, fresh=loop.fresh) as snapshot, _precision(loop):
        for change in loop.prepare:
            change(snapshot)
        optimizer = snapshot.optimizer
        for group in optimizer.param_groups:
            group["lr"] = group["lr"] * loop.rate
        batches = _seen(subject, loop, loop, seed)
        snapshot.seed(seed)
        with loop.around():
            _train(snapshot, optimizer, batches, loop, subject, steps, clock)
        with measured_as.around(), torch.no_grad():
            found = [float(snapshot.loss(b)) for b in _seen(subject, measured_as, loop, seed)[:JUDGED]]
    mean = sum(found) / len(found)
    return mean if math.isfinite(mean) else math.inf


def _seen(subject: Subject, fed_by: TrialLoop, seen_by: TrialLoop, seed: int) -> list[StepBatch]:
    batches: Sequence[StepBatch] = subject.batches
    batches = batches if fed_by.feed is None else fed_by.feed(batches, seed)
    return list(batches if seen_by.see is None else seen_by.see(batches))


def _precision(loop: TrialLoop) -> contextlib.AbstractContextManager[Any]:
    return torch.autocast("cpu", enabled=False) if loop.full_precision else contextlib.nullcontext()


def _train(
    snapshot: StepSnapshot,
    optimizer: Optimizer,
    batches: Sequence[StepBatch],
    loop: TrialLoop,
    subject: Subject,
    steps: int,
    clock: Clock,
) -> None:
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    clip = subject.clip if loop.clip is None else loop.clip
    order = _order(len(batches), steps * loop.every)
    for step in range(steps):
        clock.tick(step / steps)
        if loop.zero:
            optimizer.zero_grad()
            _zero(subject)
        for part in range(loop.every):
            if part and not loop.keeps:
                optimizer.zero_grad()
            loss = snapshot.loss(batches[order[step * loop.every + part]])
            (loss / loop.every if loop.divide else loss).backward()
        if clip is not None:
            nn.utils.clip_grad_norm_(parameters, clip)
        optimizer.step()


def _order(count: int, length: int) -> list[int]:
    """A new order in every pass, drawn from the snapshot's generator."""
    order: list[int] = []
    while len(order) < length:
        order += torch.randperm(count).tolist()
    return order


def _zero(subject: Subject) -> None:
    """Clear gradients, also of parameters that the optimizer lacks: a fix may add them later."""
    for parameter in subject.parameters():
        parameter.grad = None
