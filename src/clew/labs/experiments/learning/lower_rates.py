"""Does a lower learning rate get further?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from clew.labs.experiments.base import Experiment, Result
from clew.labs.experiments.tools.rate_races import SEEDS, Races
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import Clock


@dataclass(frozen=True)
class LearningRateTooHigh(Experiment):
    name: ClassVar[str] = "learning-rate-too-high"
    question: ClassVar[str] = "does a lower learning rate work better?"
    rank: ClassVar[int] = 20

    lower: tuple[float, ...] = (0.1, 0.01, 0.001)  # factors on the user's rate
    clear: float = 0.5  # share of what a lower rate gains at which there is no question left

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
