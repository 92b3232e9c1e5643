"""Does a much higher learning rate get anywhere while the user's stands still?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from clew.labs.experiments.base import Experiment, Result
from clew.labs.experiments.tools.rate_races import SEEDS, Races
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import Clock


@dataclass(frozen=True)
class LearningRateTooLow(Experiment):
    name: ClassVar[str] = "learning-rate-too-low"
    question: ClassVar[str] = "does the network learn at this learning rate?"
    rank: ClassVar[int] = 21

    higher: tuple[float, ...] = (10.0, 100.0, 1000.0, 10000.0)  # factors on the user's rate
    clear: float = 0.05  # share of what a higher rate gains at which there is no question left

    def run(self, subject: Subject, clock: Clock) -> Result:
        races = Races.of(subject)
        own = races.course(1.0, 0, clock).gain
        best, gain = 1.0, own
        for factor in self.higher:
            reached = races.course(factor, 0, clock).gain
            if reached > gain:
                best, gain = factor, reached
            if reached < 0.9 * gain or own > self.clear * races.start > 0:
                break  # past the best there is, or no question left
        seeds = 1 if own > self.clear * gain else SEEDS
        return Result(races.table((1.0, best), seeds, clock), races.plots((1.0, best), clock))
