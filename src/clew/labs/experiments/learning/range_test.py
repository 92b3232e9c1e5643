"""At which learning rates does the loss fall? The learning-rate range test."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from clew.labs.experiments.base import Experiment, Plot, Result
from clew.labs.experiments.learning.rate_races import Races
from clew.labs.experiments.tools.short_training import look
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import Clock

Curve = tuple[list[float], list[float]]  # rates, and losses minus each batch's untrained loss


@dataclass(frozen=True)
class RangeTest(Experiment):
    name: ClassVar[str] = "hyperparameters-off"
    question: ClassVar[str] = "at which learning rates does the loss fall?"
    rank: ClassVar[int] = 30

    decades: float = 4.0  # to each side of the user's rate
    steps: int = 96  # in all: a dozen for each power of ten
    smoothing: float = 0.75  # share of the average so far that each loss leaves; about four losses
    visible: float = 0.1  # share of the whole fall at which the loss counts as falling
    blown: float = 3.0  # ends the test: loss above its start, in units of the fall

    def run(self, subject: Subject, clock: Clock) -> Result:
        races = Races.of(subject)
        rates, losses = self._sweep(subject, clock)
        smooth = self._smoothed(losses)
        data = {**races.about(), "rate": subject.learning_rate(), **self._region(rates, smooth, losses)}
        plot = Plot(f"loss while the learning rate rises; yours is {data['rate']:.2g}", rates, smooth,
                    x_label="learning rate", log_x=True)  # fmt: skip
        return Result(data, [plot])

    def _sweep(self, subject: Subject, clock: Clock) -> Curve:
        own, batches = subject.learning_rate(), subject.batches
        growth = 10 ** (2 * self.decades / self.steps)
        rates: list[float] = []
        losses: list[float] = []
        with subject.snapshot() as snapshot:
            # Each batch's untrained loss, so that a hard batch does not look like a high rate.
            untrained = [look(snapshot, batch).loss for batch in batches]
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

    def _region(self, rates: list[float], smooth: list[float], losses: list[float]) -> dict[str, Any]:
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
        return {
            "start": start,
            "noise": noise,
            "fall": fall,
            "low": rates[first],
            "best": rates[lowest],
            "diverges": rates[bad] if bad is not None else ended,
        }
