"""Does the model learn only when dropout and weight decay are off?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from clew.labs.experiments.base import Experiment, Plot, Result
from clew.labs.experiments.tools.loss_bounds import mean_loss
from clew.labs.experiments.tools.short_training import (
    TrainingSetting,
    dropouts,
    must_be_finite,
    train,
    without_dropout,
)
from clew.labs.snapshot.step_batch import StepBatch
from clew.labs.snapshot.step_snapshot import StepSnapshot
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import Clock
from clew.records.facts.experiment_facts import SourceLine
from clew.records.facts.learning_experiment_facts import OverRegularisedFact

ON, OFF = "on", "off"
SETTINGS = {
    ON: TrainingSetting(),
    OFF: TrainingSetting(dropout=False, decay=False),
    "without dropout": TrainingSetting(dropout=False),
    "without decay": TrainingSetting(decay=False),
}
Gains = dict[str, tuple[float, ...]]  # by the setting, seed by seed


@dataclass(frozen=True)
class RegularisationOff(Experiment):
    name = "over-regularised"
    question = "does the network learn only without dropout and weight decay?"
    rank = 32
    needs_optimizer = True

    steps: int = 50  # of each training
    seeds: int = 3  # random numbers, and where the batches begin
    measured: int = 4  # batches on which the loss is measured, without dropout in either case
    clear: float = 0.5  # share of the fall without them at which the answer is clear

    def run(self, subject: Subject, clock: Clock) -> Result:
        subject.need_step()
        decay = max(float(g.get("weight_decay") or 0.0) for g in subject.optimizer.param_groups)
        with subject.snapshot() as snapshot:
            dropped = dropouts(snapshot, subject.batch())
            start = self._level(snapshot)
        must_be_finite(start)
        found = OverRegularisedFact(
            line=SourceLine(*subject.line),
            start=start,
            steps=self.steps,
            decay=decay,
            dropouts=tuple(dropped),
        )
        if not dropped and not decay:
            return Result(found)  # nothing to switch off
        gains: Gains = {}
        plots = []
        for name in (ON, OFF):
            gain, losses = self._trained(subject, name, 0, start, clock)
            gains[name] = (gain,)
            plots.append(Plot.of_losses(f"loss with dropout and decay {name}", losses))
        if gains[ON][0] <= self.clear * gains[OFF][0]:
            self._in_depth(subject, found, gains, clock)
        return Result(replace(found, gains=gains), plots)

    def _in_depth(self, subject: Subject, found: OverRegularisedFact, gains: Gains, clock: Clock) -> None:
        """More seeds, and each of the two switched off alone."""

        def gain(name: str, seed: int = 0) -> float:
            return self._trained(subject, name, seed, found.start, clock)[0]

        for seed in range(1, self.seeds):
            for name in (ON, OFF):
                gains[name] += (gain(name, seed),)
        if found.decay and found.dropouts:
            for name in ("without dropout", "without decay"):
                gains[name] = (gain(name),)

    def _trained(
        self, subject: Subject, name: str, seed: int, start: float, clock: Clock
    ) -> tuple[float, list[float]]:
        """By how much the loss without dropout fell, and the losses of the training."""
        clock.tick()
        with subject.snapshot(seed=seed) as snapshot:
            order = _turned(subject.batches, seed)
            losses = train(snapshot, order, self.steps, SETTINGS[name], clock, seed=seed)
            if not math.isfinite(losses[-1]):
                return -math.inf, losses
            return start - self._level(snapshot), losses

    def _level(self, snapshot: StepSnapshot) -> float:
        subject = snapshot.subject
        batches = [subject.batch(), *subject.batches[1 : self.measured]]
        with without_dropout(subject):
            return mean_loss(snapshot, batches)


def _turned(batches: Sequence[StepBatch], by: int) -> list[StepBatch]:
    by %= len(batches)
    return [*batches[by:], *batches[:by]]
