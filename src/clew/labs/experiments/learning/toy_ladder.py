"""Which is the first of ever harder toy tasks that it can't learn?"""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from typing import Any, ClassVar

from clew.labs.experiments.base import Experiment, Plot, Result
from clew.labs.experiments.tools.short_training import Look, Setting, dropouts, look, many, scale, train
from clew.labs.experiments.tools.toy_tasks import TASKS, WORDS, target_of, values_of
from clew.labs.snapshot.step_batch import Batch
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge, Clock

PLAN = (Setting.calm(), Setting.calm("Adam", 1e-2), Setting.calm(rate=10.0), Setting.calm("Adam", 1e-3))


@dataclass(frozen=True)
class ToyTaskFailed(Experiment):
    name: ClassVar[str] = "toy-task-failed"
    question: ClassVar[str] = "can the network learn simple tasks?"
    rank: ClassVar[int] = 15

    samples: int = 32  # enough that a rule shows, few enough to be learned by heart at worst
    steps: int = 100  # for each attempt
    learned: float = 0.3  # share of the way still ahead at which a rung counts as taken

    def run(self, subject: Subject, clock: Clock) -> Result:
        subject.need_step()
        _ = subject.optimizer
        batch = many(subject, self.samples)
        values = values_of(target_of(batch))
        with subject.snapshot() as snapshot:
            dropouts(subject, snapshot, batch)
        rungs: list[dict[str, Any]] = []
        plots: list[Plot] = []
        for number, (name, task) in enumerate(TASKS.items()):
            clock.tick(number / len(TASKS))
            try:
                toy = task(batch, values)
            except CannotJudge:
                continue  # the data has no such rule to offer
            rung, losses = self._rung(subject, toy, clock)
            rungs.append({"name": name, "words": WORDS[name], **rung})
            plots = [
                Plot(f"loss while the network learns to {WORDS[name]}", list(range(len(losses))), losses)
            ]
            if not rung["taken"]:
                break
        if not rungs:
            raise CannotJudge("no toy task suits the data")
        return Result({"rungs": rungs, "samples": batch.size, "line": list(subject.line)}, plots)

    def _rung(self, subject: Subject, toy: Batch, clock: Clock) -> tuple[dict[str, Any], list[float]]:
        """The best of all attempts; the first that takes the rung ends it."""
        tried = []
        for setting in PLAN:
            tried.append(self._attempt(subject, toy, setting, clock))
            if tried[-1][0]["taken"]:
                return tried[-1]
        return min(tried, key=lambda attempt: float(attempt[0]["remaining"]))

    def _attempt(
        self, subject: Subject, toy: Batch, setting: Setting, clock: Clock
    ) -> tuple[dict[str, Any], list[float]]:
        with subject.snapshot() as snapshot, setting.around(subject):
            first = look(snapshot, toy)
            low = self._low(first)
            losses = train(subject, snapshot, [toy], self.steps, setting, clock, until=lambda v: v <= low)
            last = Look(math.inf)
            with contextlib.suppress(ArithmeticError):
                last = look(snapshot, toy) if math.isfinite(losses[-1]) else last
        where = scale(first, last)
        left = remaining(first, last, where.floor, where.constant)
        taken = left <= self.learned or (last.accuracy or 0.0) >= 0.95
        return {
            "how": setting.named(subject),
            "steps": len(losses),
            "start": first.loss,
            "end": last.loss,
            "floor": where.floor,
            "accuracy": last.accuracy,
            "remaining": left,
            "taken": taken,
        }, losses

    def _low(self, first: Look) -> float:
        """A loss at which a rung is taken without doubt."""
        known = scale(first, first)
        floor = 0.0 if known.floor is None else known.floor
        return floor + 0.5 * self.learned * max(reference(first, floor, known.constant) - floor, 0.0)


def reference(first: Look, floor: float, constant: float | None) -> float:
    """Where the way begins: at what ignoring the input gives, unless that is the answer already."""
    if constant is not None and constant - floor > 1e-2 * abs(first.loss):
        return min(first.loss, constant)
    return first.loss


def remaining(first: Look, last: Look, floor: float | None, constant: float | None) -> float:
    """Share of the way still ahead; infinite if it got lost."""
    if not math.isfinite(last.loss):
        return math.inf
    lowest = 0.0 if floor is None else floor
    way = reference(first, lowest, constant) - lowest
    return (last.loss - lowest) / way if way > 1e-3 else 0.0  # 0: it began at the answer
