"""How much do the gradients of single batches differ? Measures the gradient noise scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import torch
from torch import Tensor

from clew.labs.experiments.base import Experiment, Plot, Result
from clew.labs.experiments.tools.short_training import TrainingSetting, train, trained
from clew.labs.snapshot.step_batch import StepBatch
from clew.labs.snapshot.step_snapshot import ObservedStep, StepSnapshot
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge, Clock
from clew.records.facts.experiment_facts import SourceLine
from clew.records.facts.learning_experiment_facts import BatchSizeUnfitFact, NoisePoint

GROUPS = 4  # of batches, whose mean gradients are compared with each other


@dataclass(frozen=True)
class GradientNoise(Experiment):
    name = "batch-size-unfit"
    question = "do the gradients of single batches agree?"
    rank = 36

    batches: int = 16  # whose gradients are compared
    least: int = 8  # with fewer the first batch is cut into parts
    parts: int = 8
    points: int = 3  # points in a short training at which they are compared
    between: int = 15  # steps of training from one to the next

    def run(self, subject: Subject, clock: Clock) -> Result:
        subject.need_step()
        compared, small = self._compared(subject)
        points: list[NoisePoint] = []
        with subject.snapshot() as snapshot:
            if _among_themselves(snapshot.observe(subject.batch()), subject.batch().size):
                raise CannotJudge("the loss compares the samples of a batch with each other")
            optimizer = snapshot.optimizer
            for number in range(self.points):
                clock.tick(number / self.points)
                noise = _noise(snapshot, compared, small, optimizer, clock)
                points.append(replace(noise, step=number * self.between))
                if number + 1 < self.points:
                    train(
                        snapshot,
                        subject.batches,
                        self.between,
                        TrainingSetting(),
                        clock,
                        optimizer=optimizer,
                    )
        found = BatchSizeUnfitFact(
            batch=_size(subject),
            line=SourceLine(*subject.line),
            compared=len(compared),
            points=tuple(points),
        )
        steps, scales = [p.step for p in points], [p.scale for p in points]
        return Result(found, [Plot("gradient noise scale", steps, scales, y_label="samples")])

    def _compared(self, subject: Subject) -> tuple[Sequence[StepBatch], float]:
        """Batches of one size, and that size in samples."""
        first = subject.batch()
        if len(subject.batches) == 1 and len(subject.losses) > 1:
            raise CannotJudge("all data is one batch: there is no noise between batches")
        alike = [b for b in subject.batches if b.size == first.size][: self.batches]
        if len(alike) >= self.least:
            return alike, float(_size(subject))
        if first.size < 2 * self.parts:
            raise CannotJudge("too few batches to compare their gradients")
        part = first.size // self.parts
        cut = [first.rows(range(n * part, (n + 1) * part)) for n in range(self.parts)]
        return cut, part * _size(subject) / first.size


def _size(subject: Subject) -> int:
    """As the loader was configured, if there is one: the first dimension may be time."""
    size = getattr(subject.loader, "batch_size", None)
    return size if isinstance(size, int) else subject.batch().size


def _among_themselves(seen: ObservedStep, size: int) -> bool:
    """Scores of all pairs within a batch: another batch size would be another task."""
    return any(
        call.prediction.dim() == 2
        and tuple(call.prediction.shape) == (size, size)
        and call.target is not None
        and torch.equal(call.target.cpu(), torch.arange(size))
        for call in seen.calls
    )


def _noise(
    snapshot: StepSnapshot, batches: Sequence[StepBatch], size: float, optimizer: Any, clock: Clock
) -> NoisePoint:
    """McCandlish et al. 2018, appendix A.1; the true gradient's length from products of independent parts."""
    parameters = trained(optimizer)
    sums: list[Tensor | None] = [None] * GROUPS
    squares = 0.0
    for number, batch in enumerate(batches[: len(batches) // GROUPS * GROUPS]):
        clock.tick()
        gradient = _gradient(snapshot, batch, parameters)
        squares += float(gradient.double().square().sum())
        before = sums[number % GROUPS]
        sums[number % GROUPS] = gradient if before is None else before + gradient
    count = len(batches) // GROUPS
    products = [
        float((a @ b).double()) / count**2 for a, b in combinations([s for s in sums if s is not None], 2)
    ]
    length = sum(products) / len(products)
    # Products share their parts, so the mean of six is about as certain as that of two.
    error = math.sqrt(sum((p - length) ** 2 for p in products) / (len(products) - 1) / 2)
    spread = (squares / (count * GROUPS) - length) * size
    if not math.isfinite(spread):
        raise CannotJudge("the gradient is non-finite")
    return NoisePoint(
        scale=_over(spread, length),
        least=_over(spread, length + 2 * error),
        most=_over(spread, length - 2 * error),
    )


def _over(spread: float, length: float) -> float:
    return max(spread, 0.0) / length if length > 0 else math.inf


def _gradient(snapshot: StepSnapshot, batch: StepBatch, parameters: Sequence[Tensor]) -> Tensor:
    gradients = snapshot.gradients(snapshot.loss(batch), parameters)
    parts = [g.detach().to_dense() if g.is_sparse else g.detach() for g in gradients if g is not None]
    if not parts:
        raise CannotJudge("the trained parameters get no gradient")
    return torch.cat([part.reshape(-1).float() for part in parts])
