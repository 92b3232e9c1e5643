"""Can the model memorise a few samples?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from clew.labs.experiments.base import Experiment, Plot, Result
from clew.labs.experiments.tools.loss_bounds import LossRange, MeasuredLoss, measured
from clew.labs.experiments.tools.short_training import (
    TrainingSetting,
    dropouts,
    few,
    must_be_finite,
    train_until,
)
from clew.labs.snapshot.step_batch import StepBatch
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import Clock
from clew.records.facts.experiment_facts import SourceLine
from clew.records.facts.learning_experiment_facts import CannotOverfitBatchFact, OverfitTraining

# As the program trains, then with everything that disturbs training off, then at other rates; Adam last,
# so that a poor optimizer is not taken for a network that can't learn.
PLAN = (
    TrainingSetting(),
    TrainingSetting.calm(),
    TrainingSetting.calm(rate=10.0),
    TrainingSetting.calm(rate=0.1),
    TrainingSetting.calm("Adam", 1e-3),
    TrainingSetting.calm("Adam", 1e-2),
)


@dataclass(frozen=True)
class OverfitBatch(Experiment):
    name = "cannot-overfit-batch"
    question = "can the network memorise a few samples?"
    rank = 10

    samples: int = 8  # few enough for any network that is wired right
    steps: int = 150  # for each attempt; small networks need a few dozen
    enough: float = 0.05  # remaining share of the way at which an attempt ends early

    def run(self, subject: Subject, clock: Clock) -> Result:
        subject.need_training()
        batch = few(subject, self.samples)
        with subject.snapshot() as snapshot:
            start, spread = _noise(measured(snapshot, batch, seed).loss for seed in range(3))
            dropouts(snapshot, batch)
        must_be_finite(start)
        tried: list[tuple[OverfitTraining, list[float]]] = []
        for number, setting in enumerate(PLAN):
            clock.tick(number / len(PLAN))
            tried.append(self._attempt(subject, batch, setting, start, clock))
            if self._learned(tried[-1][0], start, spread):
                break
        best, losses = min(tried, key=lambda attempt: attempt[0].end)
        found = CannotOverfitBatchFact(
            samples=batch.size,
            start=start,
            spread=spread,
            line=SourceLine(*subject.line),
            attempts=tuple(attempt for attempt, _ in tried),
        )
        title = f"loss on the same {batch.size} samples ({best.how})"
        return Result(found, [Plot.of_losses(title, losses)])

    def _attempt(
        self, subject: Subject, batch: StepBatch, setting: TrainingSetting, start: float, clock: Clock
    ) -> tuple[OverfitTraining, list[float]]:
        """One of the trainings, and its losses."""
        first, last, losses = train_until(
            subject, batch, self.steps, setting, clock, lambda first: self._low(first, start)
        )
        where = LossRange.between(first, last)
        end = min(last.loss, losses[-1]) if math.isfinite(last.loss) else math.inf
        attempt = OverfitTraining(
            how=setting.named(subject),
            calm=not setting.noise,
            own=not setting.optimizer,
            steps=len(losses),
            end=end,
            floor=where.floor,
            constant=where.constant,
            accuracy=last.accuracy,
            remaining=_remaining(where, start, end),
        )
        return attempt, losses

    def _low(self, first: MeasuredLoss, start: float) -> float:
        """The loss that counts as memorised without doubt."""
        known = LossRange.between(first, first)
        if known.floor is None:
            return self.enough * start if start > 0 else -math.inf
        reference = start if known.constant is None else min(start, known.constant)
        return known.floor + self.enough * max(reference - known.floor, 0.0)

    def _learned(self, attempt: OverfitTraining, start: float, spread: float) -> bool:
        """Whether no further attempt is needed."""
        left = attempt.remaining
        if left is None:
            return start - attempt.end > max(0.3 * abs(start), 10 * spread)
        return left <= 2 * self.enough or (left <= 0.3 and (attempt.accuracy or 0.0) >= 0.97)


def _noise(losses: Any) -> tuple[float, float]:
    """The median, and the spread of losses on the same batch without any training."""
    values = sorted(losses)
    return values[len(values) // 2], values[-1] - values[0]


def _remaining(where: LossRange, start: float, end: float) -> float | None:
    """The share of the way from the constant prediction's loss to the floor that is left."""
    if where.floor is None or not math.isfinite(end):
        return None
    reference = start if where.constant is None else min(start, where.constant)
    if reference - where.floor <= 1e-3 * abs(start):  # one class, or one value: nothing to learn
        reference = start
    return (end - where.floor) / max(reference - where.floor, 1e-12)
