"""Does another optimizer get much further at any learning rate?"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from torch.optim import Optimizer

from clew.labs.experiments.base import Experiment, Plot, Result
from clew.labs.experiments.tools.rate_trainings import SEEDS, RateTrainings
from clew.labs.experiments.tools.short_training import OWN
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import Clock
from clew.records.facts.learning_experiment_facts import OptimizerGains, OptimizerUnfitFact

Entry = tuple[str, float]  # optimizer, and its rate (a multiple of the user's own)


@dataclass(frozen=True)
class OtherOptimizers(Experiment):
    name = "optimizer-unfit"
    question = "does another optimizer work much better?"
    rank = 38
    needs_optimizer = True

    own: tuple[float, ...] = (1.0, 10.0, 0.1, 100.0)  # multiples of the user's rate
    usual: tuple[float, ...] = (1e-3, 1e-2, 0.1)  # rates that the user's optimizer is tried at, too
    sgd: tuple[float, ...] = (0.1, 0.01)  # with a momentum of 0.9
    adam: tuple[float, ...] = (1e-2, 1e-3)
    clear: float = 0.5  # share of the best fall at which the answer is clear

    def run(self, subject: Subject, clock: Clock) -> Result:
        trainings = RateTrainings.of(subject)
        own = self._best(
            [(OWN, factor) for factor in self._factors(subject.learning_rate())], trainings, clock
        )
        entries = [own]
        if not self._far_enough(own, trainings, clock):
            entries.append(self._best(self._rivals(subject.optimizer), trainings, clock))
        gains = [trainings.run(rate, 0, clock, name).gain for name, rate in entries]
        seeds = 1 if gains[0] > self.clear * gains[-1] or len(entries) == 1 else SEEDS
        rows = tuple(self._row(trainings, name, rate, seeds, clock) for name, rate in entries)
        found = trainings.about(OptimizerUnfitFact)
        return Result(
            replace(found, start=trainings.start, steps=trainings.steps, rows=rows),
            [_plot(trainings, row.name, *entry, clock) for row, entry in zip(rows, entries, strict=True)],
        )

    def _best(self, entries: list[Entry], trainings: RateTrainings, clock: Clock) -> Entry:
        def gain(entry: Entry) -> float:
            return trainings.run(entry[1], 0, clock, entry[0]).gain

        return max(entries, key=gain)

    def _factors(self, rate: float) -> list[float]:
        """Without factors that lie within half a power of ten of another."""
        found = list(self.own)
        for factor in (usual / rate for usual in self.usual if rate > 0):
            if all(abs(math.log10(factor / other)) > 0.5 for other in found):
                found.append(factor)
        return found

    def _rivals(self, optimizer: Optimizer) -> list[Entry]:
        """Optimizers of another kind: the same one at another rate only tests the rate."""
        adams = [(name, rate) for name in ("Adam", "AdamW") for rate in self.adam]
        sgds = [("SGD", rate) for rate in self.sgd]
        if "Adam" in type(optimizer).__name__:
            return sgds
        return adams if optimizer.param_groups[0].get("momentum") else [*sgds, *adams]

    def _far_enough(self, own: Entry, trainings: RateTrainings, clock: Clock) -> bool:
        """Most of a loss that can't be negative is gone: no optimizer can be far ahead."""
        gain = trainings.run(own[1], 0, clock).gain
        return trainings.start > 0 and gain > self.clear * trainings.start

    def _row(
        self, trainings: RateTrainings, name: str, rate: float, seeds: int, clock: Clock
    ) -> OptimizerGains:
        subject = trainings.subject
        return OptimizerGains(
            name=name or type(subject.optimizer).__name__,
            own=name == OWN,
            rate=rate if name else rate * subject.learning_rate(),
            gains=trainings.gains(rate, seeds, clock, name),
        )


def _plot(trainings: RateTrainings, label: str, name: str, rate: float, clock: Clock) -> Plot:
    losses = [v for v in trainings.run(rate, 0, clock, name).losses if math.isfinite(v)]
    return Plot.of_losses(f"loss with {label}", losses)
