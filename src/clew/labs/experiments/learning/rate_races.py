"""Compares the user's learning rate with others: same initial state, same batches, several orders."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from clew.labs.experiments.base import Experiment, Plot, Result
from clew.labs.experiments.tools.short_training import OWN, TrainingSetting, dropouts, look, train
from clew.labs.snapshot.step_batch import StepBatch
from clew.labs.snapshot.step_snapshot import StepSnapshot
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge, Clock
from clew.records.codec import json_float

SEEDS = 3  # orders of the batches, and random numbers
MEASURED = 4  # batches on which the loss is measured before and after
CACHE = "rates"


@dataclass
class RateCourse:
    """One training: how far the loss on the measured batches fell."""

    rate: float
    seed: int
    gain: float  # -inf: became non-finite
    losses: list[float] = field(repr=False, default_factory=list)


@dataclass
class Races:
    """Trainings of a few dozen steps, each run once and cached."""

    subject: Subject
    steps: int
    measured: Sequence[StepBatch]
    start: float  # mean loss of the measured batches, untrained
    done: dict[tuple[str, float, int], RateCourse] = field(default_factory=dict)

    @classmethod
    def of(cls, subject: Subject, steps: int = 40) -> Races:
        """Shared by the experiments of one subject."""
        kept = subject.cache.get(CACHE)
        if isinstance(kept, cls):
            return kept
        subject.need_step()
        _ = subject.optimizer
        measured = [subject.batch(), *subject.batches[1:MEASURED]]
        with subject.snapshot() as snapshot:
            dropouts(subject, snapshot, measured[0])
            start = level(snapshot, measured)
        if not math.isfinite(start):
            raise CannotJudge("the loss is non-finite before the first step")
        made = subject.cache[CACHE] = cls(subject, steps, measured, start)
        return made

    def course(self, rate: float, seed: int, clock: Clock, optimizer: str = OWN) -> RateCourse:
        key = (optimizer, rate, seed)
        if key not in self.done:
            setting = TrainingSetting(optimizer, rate)
            with self.subject.snapshot(seed=seed) as snapshot:
                losses = train(
                    self.subject, snapshot, self.order(seed), self.steps, setting, clock, seed=seed
                )
                end = level(snapshot, self.measured) if math.isfinite(losses[-1]) else math.inf
            gain = self.start - end if math.isfinite(end) else -math.inf
            self.done[key] = RateCourse(rate, seed, gain, losses)
        return self.done[key]

    def order(self, seed: int) -> list[StepBatch]:
        order = list(self.subject.batches)
        random.Random(seed).shuffle(order)
        return order

    def table(self, factors: Sequence[float], seeds: int, clock: Clock) -> dict[str, Any]:
        """What the check reads: gains over the seeds for each factor on the user's rate."""
        own = self.subject.learning_rate()
        rows = []
        for number, factor in enumerate(factors):
            clock.tick(number / len(factors))
            gains = [json_float(self.course(factor, seed, clock).gain) for seed in range(seeds)]
            rows.append({"factor": factor, "rate": own * factor, "gains": gains})
        return {"start": self.start, "steps": self.steps, "rate": own, "rows": rows, **self.about()}

    def about(self) -> dict[str, Any]:
        group = self.subject.optimizer.param_groups[0]
        return {
            "optimizer": type(self.subject.optimizer).__name__,
            "line": list(self.subject.line),
            "warms_up": _warms_up(self.subject, group),
        }

    def plots(self, factors: Sequence[float], clock: Clock) -> list[Plot]:
        """The losses at these factors on the user's rate."""
        own = self.subject.learning_rate()
        drawn = [(factor, self.course(factor, 0, clock).losses) for factor in dict.fromkeys(factors)]
        return [
            Plot(f"loss at a learning rate of {own * factor:.2g}", list(range(len(losses))), losses)
            for factor, losses in drawn
        ]


def _warms_up(subject: Subject, group: dict[str, Any]) -> bool:
    """Whether a schedule starts below the rate that these trainings use from the first step."""
    if "max_lr" in group:  # one-cycle and cyclic schedules
        return True
    states = {id(o): s for o, s in subject.initial.optimizers} if subject.initial else {}
    first = states.get(id(subject.optimizer), {}).get("groups", [group])[0]
    return float(first["lr"]) < 0.9 * float(first.get("initial_lr", first["lr"]))


def level(snapshot: StepSnapshot, batches: Sequence[StepBatch]) -> float:
    """The mean loss with the same random numbers before and after, so that only the training differs."""
    return sum(look(snapshot, batch, seed=99).loss for batch in batches) / len(batches)


@dataclass(frozen=True)
class HigherRates(Experiment):
    name: ClassVar[str] = "learning-rate-too-low"
    question: ClassVar[str] = "does the network learn at this learning rate?"
    rank: ClassVar[int] = 21

    higher: tuple[float, ...] = (10.0, 100.0, 1000.0, 10000.0)  # factors on the user's rate
    clear: float = 0.05  # share of a higher rate's gain at which the answer is clear

    def run(self, subject: Subject, clock: Clock) -> Result:
        races = Races.of(subject)
        own = races.course(1.0, 0, clock).gain
        best, gain = 1.0, own
        for factor in self.higher:
            reached = races.course(factor, 0, clock).gain
            if reached > gain:
                best, gain = factor, reached
            if reached < 0.9 * gain or own > self.clear * races.start > 0:
                break  # past the best rate, or the answer is clear
        seeds = 1 if own > self.clear * gain else SEEDS
        return Result(races.table((1.0, best), seeds, clock), races.plots((1.0, best), clock))


@dataclass(frozen=True)
class LowerRates(Experiment):
    name: ClassVar[str] = "learning-rate-too-high"
    question: ClassVar[str] = "does a lower learning rate work better?"
    rank: ClassVar[int] = 20

    lower: tuple[float, ...] = (0.1, 0.01, 0.001)  # factors on the user's rate
    clear: float = 0.5  # share of a lower rate's gain at which the answer is clear

    def run(self, subject: Subject, clock: Clock) -> Result:
        races = Races.of(subject)
        own = races.course(1.0, 0, clock).gain
        best, gain = 1.0, own
        for factor in self.lower:
            reached = races.course(factor, 0, clock).gain
            if reached > gain:
                best, gain = factor, reached
            elif gain > 0:  # lower ones only gain less
                break
        seeds = 1 if own > self.clear * gain else SEEDS
        return Result(races.table((1.0, best), seeds, clock), races.plots((1.0, best), clock))
