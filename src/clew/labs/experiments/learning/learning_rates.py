"""Is the learning rate right? Compares it with others, and sweeps over it (the range test).

All trainings have the same initial state and the same batches, in several orders.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from clew.labs.experiments.base import Experiment, Plot, Result
from clew.labs.experiments.tools.loss_bounds import mean_loss, measured
from clew.labs.experiments.tools.short_training import OWN, TrainingSetting, dropouts, must_be_finite, train
from clew.labs.snapshot.step_batch import StepBatch
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import Clock
from clew.records.facts.experiment_facts import SourceLine
from clew.records.facts.learning_experiment_facts import (
    HyperparametersOffFact,
    LearningRateTooHighFact,
    LearningRateTooLowFact,
    ProgramTraining,
    RateGains,
)

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

    def compared(
        self,
        kind: type[LearningRateTooHighFact | LearningRateTooLowFact],
        best: float,
        seeds: int,
        clock: Clock,
    ) -> Result:
        """What the check reads: gains over the seeds at the user's rate, and at this multiple of it."""
        own = self.subject.learning_rate()
        rows = []
        for number, factor in enumerate((1.0, best)):
            clock.tick(number / 2)
            rows.append(RateGains(factor, own * factor, self.gains(factor, seeds, clock)))
        found = replace(self.about(kind), start=self.start, steps=self.steps, rate=own, rows=tuple(rows))
        plots = [
            Plot.of_losses(
                f"loss at a learning rate of {own * factor:.2g}", self.run(factor, 0, clock).losses
            )
            for factor in dict.fromkeys((1.0, best))
        ]
        return Result(found, plots)

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


@dataclass(frozen=True)
class HigherRates(Experiment):
    name = "learning-rate-too-low"
    question = "does the network learn at this learning rate?"
    rank = 21
    needs_optimizer = True

    higher: tuple[float, ...] = (10.0, 100.0, 1000.0, 10000.0)  # multiples of the user's rate
    clear: float = 0.05  # share of a higher rate's gain at which the answer is clear

    def run(self, subject: Subject, clock: Clock) -> Result:
        trainings = RateTrainings.of(subject)
        own = trainings.run(1.0, 0, clock).gain
        best, gain = 1.0, own
        for factor in self.higher:
            reached = trainings.run(factor, 0, clock).gain
            if reached > gain:
                best, gain = factor, reached
            if reached < 0.9 * gain or own > self.clear * trainings.start > 0:
                break  # past the best rate, or the answer is clear
        seeds = SEEDS if own <= self.clear * gain else 1
        return trainings.compared(LearningRateTooLowFact, best, seeds, clock)


@dataclass(frozen=True)
class LowerRates(Experiment):
    name = "learning-rate-too-high"
    question = "does a lower learning rate work better?"
    rank = 20
    needs_optimizer = True

    lower: tuple[float, ...] = (0.1, 0.01, 0.001)  # multiples of the user's rate
    clear: float = 0.5  # share of a lower rate's gain at which the answer is clear

    def run(self, subject: Subject, clock: Clock) -> Result:
        trainings = RateTrainings.of(subject)
        own = trainings.run(1.0, 0, clock).gain
        best, gain = 1.0, own
        for factor in self.lower:
            reached = trainings.run(factor, 0, clock).gain
            if reached > gain:
                best, gain = factor, reached
            elif gain > 0:  # lower ones only gain less
                break
        seeds = SEEDS if own <= self.clear * gain else 1
        return trainings.compared(LearningRateTooHighFact, best, seeds, clock)


Curve = tuple[list[float], list[float]]  # rates, and losses minus each batch's untrained loss


@dataclass(frozen=True)
class RangeTest(Experiment):
    name = "hyperparameters-off"
    question = "at which learning rates does the loss fall?"
    rank = 30
    needs_optimizer = True

    decades: float = 4.0  # to each side of the user's rate
    steps: int = 96  # in all: a dozen for each power of ten
    smoothing: float = 0.75  # share of the average so far that each loss leaves; about four losses
    visible: float = 0.1  # share of the whole fall at which the loss counts as falling
    blown: float = 3.0  # ends the test: loss above its start, in units of the fall

    def run(self, subject: Subject, clock: Clock) -> Result:
        trainings = RateTrainings.of(subject)
        rates, losses = self._sweep(subject, clock)
        smooth, own = self._smoothed(losses), subject.learning_rate()
        found = replace(trainings.about(HyperparametersOffFact), rate=own)
        plot = Plot(f"loss while the learning rate rises; yours is {own:.2g}", rates, smooth,
                    x_label="learning rate", log_x=True)  # fmt: skip
        return Result(self._with_region(found, rates, smooth, losses), [plot])

    def _sweep(self, subject: Subject, clock: Clock) -> Curve:
        own, batches = subject.learning_rate(), subject.batches
        growth = 10 ** (2 * self.decades / self.steps)
        rates: list[float] = []
        losses: list[float] = []
        with subject.snapshot() as snapshot:
            # Each batch's untrained loss, so that a hard batch does not look like a high rate.
            untrained = [measured(snapshot, batch).loss for batch in batches]
            usual = sum(untrained) / len(untrained)
            snapshot.seed(0)
            optimizer, factor = snapshot.optimizer, 10.0**-self.decades
            for group in optimizer.param_groups:
                group["lr"] = group["lr"] * factor

            def on_step(number: int, loss: float) -> bool:
                clock.tick(number / self.steps)
                rates.append(own * factor * growth**number)
                losses.append(loss - untrained[number % len(batches)] + usual)
                for group in optimizer.param_groups:
                    group["lr"] = group["lr"] * growth
                return not math.isfinite(loss) or self._gone(losses, usual)

            snapshot.train(batches, self.steps, optimizer=optimizer, on_step=on_step)
        return rates, losses

    def _gone(self, losses: Sequence[float], usual: float) -> bool:
        fall = max(usual - min(losses), 0.01 * abs(usual))
        return len(losses) > 4 and min(losses[-3:]) > usual + self.blown * fall

    def _smoothed(self, losses: Sequence[float]) -> list[float]:
        average, result = 0.0, []
        for number, loss in enumerate(losses):
            if not math.isfinite(loss):
                break
            average = self.smoothing * average + (1 - self.smoothing) * loss
            result.append(average / (1 - self.smoothing ** (number + 1)))
        return result

    def _with_region(
        self, found: HyperparametersOffFact, rates: list[float], smooth: list[float], losses: list[float]
    ) -> HyperparametersOffFact:
        """From where the loss visibly falls to where it is lowest, and where it rises above its start."""
        quiet = sorted(smooth[: max(4, self.steps // 8)])  # the lowest rates change nothing
        start, noise = quiet[len(quiet) // 2], quiet[-1] - quiet[0]
        lowest = min(range(len(smooth)), key=smooth.__getitem__)
        fall = start - smooth[lowest]
        first = lowest
        while first > 0 and smooth[first - 1] < start - self.visible * fall:
            first -= 1
        bad = next((n for n in range(lowest, len(smooth)) if smooth[n] > start + 0.5 * fall), None)
        ended = None if len(losses) >= self.steps and bad is None else rates[len(smooth) - 1]
        return replace(
            found,
            start=start,
            noise=noise,
            fall=fall,
            low=rates[first],
            best=rates[lowest],
            diverges=rates[bad] if bad is not None else ended,
        )
