"""Trainings of a few dozen steps at different learning rates, each run once and shared by experiments.

All have the same initial state and the same batches, in several orders.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from clew.labs.experiments.tools.loss_bounds import mean_loss
from clew.labs.experiments.tools.short_training import OWN, TrainingSetting, dropouts, must_be_finite, train
from clew.labs.snapshot.step_batch import StepBatch
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import Clock
from clew.records.facts.experiment_facts import SourceLine
from clew.records.facts.learning_experiment_facts import ProgramTraining

SEEDS = 3  # orders of the batches, and random numbers
MEASURED = 4  # batches on which the loss is measured before and after
CACHE = "rates"

F = TypeVar("F", bound=ProgramTraining)


@dataclass
class RateTraining:
    """One training: how far the loss on the measured batches fell."""

    rate: float
    seed: int
    gain: float  # -inf: became non-finite
    losses: list[float] = field(repr=False, default_factory=list)


@dataclass
class RateTrainings:
    """Trainings of a few dozen steps at different learning rates, each run once and cached."""

    subject: Subject
    measured: Sequence[StepBatch]
    start: float  # mean loss of the measured batches, untrained
    steps: int = 40  # of each training
    done: dict[tuple[str, float, int], RateTraining] = field(default_factory=dict)

    @classmethod
    def of(cls, subject: Subject) -> RateTrainings:
        """Shared by the experiments of one subject."""
        kept = subject.cache.get(CACHE)
        if isinstance(kept, cls):
            return kept
        subject.need_training()
        measured = [subject.batch(), *subject.batches[1:MEASURED]]
        with subject.snapshot() as snapshot:
            dropouts(snapshot, measured[0])
            start = mean_loss(snapshot, measured)
        must_be_finite(start)
        made = subject.cache[CACHE] = cls(subject, measured, start)
        return made

    def run(self, rate: float, seed: int, clock: Clock, optimizer: str = OWN) -> RateTraining:
        """Train from the initial state at this factor of the user's rate, or at this rate of a rival."""
        key = (optimizer, rate, seed)
        if key not in self.done:
            setting = TrainingSetting(optimizer, rate)
            with self.subject.snapshot(seed=seed) as snapshot:
                losses = train(snapshot, self.order(seed), self.steps, setting, clock, seed=seed)
                end = mean_loss(snapshot, self.measured) if math.isfinite(losses[-1]) else math.inf
            gain = self.start - end if math.isfinite(end) else -math.inf
            self.done[key] = RateTraining(rate, seed, gain, losses)
        return self.done[key]

    def order(self, seed: int) -> list[StepBatch]:
        order = list(self.subject.batches)
        random.Random(seed).shuffle(order)
        return order

    def gains(self, rate: float, seeds: int, clock: Clock, optimizer: str = OWN) -> tuple[float, ...]:
        """By how much the loss fell, seed by seed."""
        return tuple(self.run(rate, seed, clock, optimizer).gain for seed in range(seeds))

    def about(self, kind: type[F]) -> F:
        """The fact with what is known of the user's own training."""
        group = self.subject.optimizer.param_groups[0]
        return kind(
            optimizer=type(self.subject.optimizer).__name__,
            line=SourceLine(*self.subject.line),
            warms_up=_warms_up(self.subject, group),
        )


def _warms_up(subject: Subject, group: dict[str, Any]) -> bool:
    """Whether a schedule starts below the rate that these trainings use from the first step."""
    if "max_lr" in group:  # one-cycle and cyclic schedules
        return True
    states = {id(o): s for o, s in subject.initial.optimizers} if subject.initial else {}
    first = states.get(id(subject.optimizer), {}).get("groups", [group])[0]
    return float(first["lr"]) < 0.9 * float(first.get("initial_lr", first["lr"]))
