"""Is the learning rate right? Compares it with others, and sweeps over it (the range test).

All trainings have the same initial state and the same batches, in several orders.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from clew.labs.experiments.base import Experiment, Plot, Result
from clew.labs.experiments.tools.loss_bounds import measured
from clew.labs.experiments.tools.rate_trainings import SEEDS, RateTrainings
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import Clock
from clew.records.facts.learning_experiment_facts import (
    HyperparametersOffFact,
    LearningRateTooHighFact,
    LearningRateTooLowFact,
    RateGains,
)


@dataclass(frozen=True)
class OtherRates(Experiment):
    """Compares the user's rate with the best of several others, tried one after the other."""

    needs_optimizer = True
    fact: ClassVar[type[LearningRateTooHighFact | LearningRateTooLowFact]]

    factors: tuple[float, ...] = ()  # multiples of the user's rate
    clear: float = 0.0  # share of another rate's gain at which the answer is clear

    @abstractmethod
    def ends_after(self, reached: float, best: float, own: float, start: float) -> bool:
        """Whether no further rate is tried after one of this gain; `best` is the largest gain before it."""

    def run(self, subject: Subject, clock: Clock) -> Result:
        trainings = RateTrainings.of(subject)
        own = trainings.run(1.0, 0, clock).gain
        best, gain = 1.0, own
        for factor in self.factors:
            reached = trainings.run(factor, 0, clock).gain
            ended = self.ends_after(reached, gain, own, trainings.start)
            if reached > gain:
                best, gain = factor, reached
            if ended:
                break
        return self._compared(trainings, best, SEEDS if own <= self.clear * gain else 1, clock)

    def _compared(self, trainings: RateTrainings, best: float, seeds: int, clock: Clock) -> Result:
        """What the check reads: gains over the seeds at the user's rate, and at this multiple of it."""
        own = trainings.subject.learning_rate()
        rows = []
        for number, factor in enumerate((1.0, best)):
            clock.tick(number / 2)
            rows.append(RateGains(factor, own * factor, trainings.gains(factor, seeds, clock)))
        about = trainings.about(self.fact)
        found = replace(about, start=trainings.start, steps=trainings.steps, rate=own, rows=tuple(rows))
        plots = [
            Plot.of_losses(
                f"loss at a learning rate of {own * factor:.2g}", trainings.run(factor, 0, clock).losses
            )
            for factor in dict.fromkeys((1.0, best))
        ]
        return Result(found, plots)


@dataclass(frozen=True)
class HigherRates(OtherRates):
    name = "learning-rate-too-low"
    question = "does the network learn at this learning rate?"
    rank = 21
    fact = LearningRateTooLowFact

    factors: tuple[float, ...] = (10.0, 100.0, 1000.0, 10000.0)
    clear: float = 0.05

    def ends_after(self, reached: float, best: float, own: float, start: float) -> bool:
        """Past the best rate, or the answer is clear."""
        return reached < 0.9 * max(best, reached) or own > self.clear * start > 0


@dataclass(frozen=True)
class LowerRates(OtherRates):
    name = "learning-rate-too-high"
    question = "does a lower learning rate work better?"
    rank = 20
    fact = LearningRateTooHighFact

    factors: tuple[float, ...] = (0.1, 0.01, 0.001)
    clear: float = 0.5

    def ends_after(self, reached: float, best: float, own: float, start: float) -> bool:
        """Lower ones only gain less."""
        return best > 0 and reached <= best


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
