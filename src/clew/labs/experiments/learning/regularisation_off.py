"""Does the model learn only when dropout and weight decay are off?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

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

ON = "on"
SETTINGS = {
    ON: TrainingSetting(),
    "off": TrainingSetting(dropout=False, decay=False),
    "without dropout": TrainingSetting(dropout=False),
    "without decay": TrainingSetting(decay=False),
}


@dataclass(frozen=True)
class RegularisationOff(Experiment):
    name = "over-regularised"
    question = "does the network learn only without dropout and weight decay?"
    rank = 32

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
        data: dict[str, Any] = {
            "line": list(subject.line),
            "start": start,
            "steps": self.steps,
            "decay": decay,
            "dropouts": [list(pair) for pair in dropped],
            "gains": {},
        }
        if not dropped and not decay:
            return Result(data)  # nothing to switch off
        plots = []
        for name in (ON, "off"):
            gain, losses = self._trained(subject, name, 0, start, clock)
            data["gains"][name] = [gain]
            plots.append(Plot.of_losses(f"loss with dropout and decay {name}", losses))
        if data["gains"][ON][0] <= self.clear * data["gains"]["off"][0]:
            self._in_depth(subject, data, start, clock)
        return Result(data, plots)

    def _in_depth(self, subject: Subject, data: dict[str, Any], start: float, clock: Clock) -> None:
        """More seeds, and each of the two switched off alone."""
        gains = data["gains"]
        for seed in range(1, self.seeds):
            for name in (ON, "off"):
                gains[name].append(self._trained(subject, name, seed, start, clock)[0])
        if data["decay"] and data["dropouts"]:
            for name in ("without dropout", "without decay"):
                gains[name] = [self._trained(subject, name, 0, start, clock)[0]]

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
