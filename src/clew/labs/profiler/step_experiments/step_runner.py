"""The user's whole training step on a snapshot, run in different variants and timed in alternation.

Inside a snapshot of the subject (see `step_snapshot.py`): parameters, buffers, optimizers and random
generators start from the same state in every timed half, and are restored at the end.

Two variants are timed in rounds, so that noise on the machine affects both. The halves of a round follow each
other closely, in alternating order (ABBA), and rounds are compared with each other only through the ratio of
their halves. A gain is clear if it is larger than the noise of these ratios and nearly every round shows it.
"""

from __future__ import annotations

import contextlib
import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from clew.hooks.steps.step_machine import distributed
from clew.labs.snapshot.step_batch import StepBatch
from clew.labs.snapshot.step_snapshot import StepSnapshot, TrainingState, cloned_optimizer
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge
from clew.records.facts.fact import TypedFact

TIME_LIMIT = 60.0  # seconds in all
SLOW = 0.5  # seconds of a step from which there is no warm-up step

Record = Callable[[TypedFact], None]
Progress = Callable[[int, int, str, float], None]  # how many are done, of how many, which one, how far
Around = Callable[[], AbstractContextManager[Any]]


def as_given(batch: StepBatch) -> StepBatch:
    """The batch unchanged."""
    return batch


def unchanged(optimizer: Optimizer) -> None:
    """The optimizer unchanged."""


@dataclass(frozen=True)
class StepVariant:
    """One variant of the step: how it differs from the program's own."""

    change: Callable[[Optimizer], None] = unchanged  # applied to a clone of each optimizer
    around: Around = contextlib.nullcontext  # a stretch of steps
    within: Around = contextlib.nullcontext  # from the batch to the loss of one step
    convert: Callable[[StepBatch], StepBatch] = as_given
    set_to_none: bool = True  # what zero_grad does with gradients


@dataclass
class StepRunner:
    """The program in a snapshot: runs steps in any variant."""

    subject: Subject
    snapshot: StepSnapshot
    now: Callable[[], float]
    _start: TrainingState = field(init=False)
    _trained: list[nn.Parameter] = field(init=False)

    def __post_init__(self) -> None:
        self._start = TrainingState.take(list(self.subject.models.values()), self.subject.optimizers)
        self._trained = self.subject.parameters()

    def start(self, variant: StepVariant, seed: int = 0) -> list[Optimizer]:
        """Reset to the state before the first step; returns clones of the optimizers."""
        self._start.put()
        for tensor, _ in self._start.tensors:
            tensor.grad = None
        clones = [cloned_optimizer(o) for o in self.snapshot.optimizers]
        for clone in clones:
            variant.change(clone)
        self.snapshot.seed(seed)
        return clones

    def step(self, batch: StepBatch, variant: StepVariant, optimizers: Sequence[Optimizer]) -> Tensor:
        """From clearing the gradients to the update; returns the loss."""

        def closure() -> Tensor:
            for optimizer in optimizers:
                optimizer.zero_grad(set_to_none=variant.set_to_none)
            with variant.within():
                loss = self.snapshot.loss(variant.convert(batch))
            loss.backward()
            if self.subject.clip is not None:
                nn.utils.clip_grad_norm_(self._trained, self.subject.clip)
            return loss.detach()

        if len(optimizers) == 1 and type(optimizers[0]).__name__ == "LBFGS":
            stepped: Any = optimizers[0].step
            return torch.as_tensor(stepped(closure))
        loss = closure()
        for optimizer in optimizers:
            optimizer.step()
        return loss

    def half(
        self, variant: StepVariant, batches: Sequence[StepBatch], steps: int, *, warm: bool = True
    ) -> float:
        """Seconds of the median step among this many, from the initial state."""
        with variant.around():
            optimizers = self.start(variant)
            if warm:
                self.step(batches[0], variant, optimizers)
            taken = []
            for number in range(steps):
                began = self.now()
                self.step(batches[number % len(batches)], variant, optimizers)
                taken.append(self.now() - began)
        return statistics.median(taken)


@contextlib.contextmanager
def step_runner(subject: Subject, now: Callable[[], float]) -> Iterator[StepRunner]:
    """A context for experiments on the step; all state is restored afterwards."""
    if distributed():
        raise CannotJudge("training is spread over several processes")
    subject.need_step()
    subject.batch()
    with subject.snapshot() as snapshot:
        yield StepRunner(subject, snapshot, now)


def error_line(error: BaseException) -> str:
    """An error in one line, including the subject if the first line only announces it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    first = " ".join(lines[: 2 if lines and lines[0].endswith(":") else 1])
    return (f"{type(error).__name__}: {first}" if first else type(error).__name__)[:240]


# -- two variants in alternation --


LEAST_ROUNDS = 5  # fewer can't show the noise
MOST_ROUNDS = 15
LEAST_GAIN = 0.05  # share of the step's time below which a gain is not reported
HALF = 0.04  # seconds that a half should take: long against the clock and a scheduler's slice
MOST_STEPS = 20  # of a half
MEDIAN_ERROR = 1.2533  # standard error of a median, in standard deviations of the mean
FROM_MAD = 1.4826  # standard deviation, in median absolute deviations
CERTAIN = 3.0  # standard errors
EARLY = 1.5  # times the noise that a gain must exceed to end the rounds: repeated tests succeed by chance
ODD_ONES = 8  # one round in this many may show the opposite

Half = Callable[[int], float]  # runs this many steps, returns the seconds of the median one


@dataclass(frozen=True)
class Pairs:
    """The result of timing two variants in alternation."""

    before: tuple[float, ...]  # seconds per step, by round
    after: tuple[float, ...]

    @property
    def ratios(self) -> list[float]:
        return [b / a for a, b in zip(self.before, self.after, strict=True) if a > 0]

    @property
    def gain(self) -> float:
        """Share of the time that the second variant saves."""
        return 1.0 - statistics.median(self.ratios) if self.ratios else 0.0

    @property
    def noise(self) -> float:
        """The uncertainty of the gain."""
        if len(self.ratios) < LEAST_ROUNDS:
            return math.inf
        return CERTAIN * MEDIAN_ERROR * FROM_MAD * _deviation(self.ratios) / math.sqrt(len(self.ratios))

    @property
    def clear(self) -> bool:
        """Whether the second variant is faster, or slower, beyond noise and by a relevant amount."""
        gain, ratios = self.gain, self.ratios
        if len(ratios) < LEAST_ROUNDS or abs(gain) < LEAST_GAIN or abs(gain) <= self.noise:
            return False
        against = sum((1.0 - ratio) * gain <= 0 for ratio in ratios)
        return against <= len(ratios) // ODD_ONES


def _settled(pairs: Pairs) -> bool:
    """Whether more rounds are unlikely to change the answer."""
    obvious = pairs.clear and abs(pairs.gain) > EARLY * pairs.noise
    return obvious or abs(pairs.gain) + pairs.noise < LEAST_GAIN


def _deviation(values: Sequence[float]) -> float:
    middle = statistics.median(values)
    return statistics.median(abs(v - middle) for v in values)


def spread(values: Sequence[float]) -> float:
    """Half of the interquartile range."""
    if len(values) < 2:
        return 0.0
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return (high - low) / 2


def steps_of_half(seconds: float) -> int:
    """How many steps of this duration make up a half."""
    return max(1, min(MOST_STEPS, round(HALF / max(seconds, 1e-9))))


def in_turn(
    before: Half,
    after: Half,
    steps: int,
    *,
    go_on: Callable[[int], bool] = lambda _: True,
) -> Pairs:
    """Rounds of both, until the answer is clear, `go_on(rounds done)` is False or there are enough."""
    taken: tuple[list[float], list[float]] = ([], [])
    while len(taken[0]) < MOST_ROUNDS and go_on(len(taken[0])):
        order = (0, 1) if len(taken[0]) % 2 == 0 else (1, 0)
        for which in order:
            taken[which].append((before, after)[which](steps))
        pairs = Pairs(tuple(taken[0]), tuple(taken[1]))
        if len(taken[0]) > LEAST_ROUNDS + 1 and _settled(pairs):
            break
    return Pairs(tuple(taken[0]), tuple(taken[1]))
