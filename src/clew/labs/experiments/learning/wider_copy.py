"""Can a wider copy learn what this network can't?"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from torch.optim import Adam

from clew.labs.experiments.base import Experiment, Plot, Result
from clew.labs.experiments.learning.toy_ladder import reference, remaining
from clew.labs.experiments.tools.short_training import Look, Setting, dropouts, look, many, scale, train
from clew.labs.experiments.tools.wider_layers import hidden_width, order_of_layers, widen
from clew.labs.snapshot.step_batch import BOTH, Batch
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge, Clock

UNKNOWN = "the lowest possible loss is not known"


@dataclass(frozen=True)
class CapacityTooSmall(Experiment):
    name: ClassVar[str] = "capacity-too-small"
    question: ClassVar[str] = "can a wider network learn what this one can't?"
    rank: ClassVar[int] = 40

    samples: int = 32  # to be learned by heart; noise among more need not be
    steps: int = 300  # for each attempt
    rates: tuple[float, ...] = (1e-2, 3e-3, 3e-2)  # of Adam, without dropout, decay and noise
    enough: float = 0.3  # share of the way still ahead at which the network is large enough
    nothing: float = 0.98  # the same, above which something else than its width is wrong

    def run(self, subject: Subject, clock: Clock) -> Result:
        subject.need_step()
        _ = subject.optimizer
        batch = many(subject, self.samples)
        if batch.tensors(BOTH):
            raise CannotJudge("the input is also the target: a narrow layer may be intended")
        with subject.snapshot() as snapshot:
            first = look(snapshot, batch)
            dropouts(subject, snapshot, batch)
        if scale(first, first).floor is None:
            raise CannotJudge(UNKNOWN)
        narrow = self._best(subject, batch, clock, lambda: None)
        data: dict[str, Any] = {"line": list(subject.line), "samples": batch.size, "narrow": narrow[0]}
        plots = [_plot("as it is", narrow[1])]
        if not narrow[0]["enough"]:
            if narrow[0]["remaining"] > self.nothing:
                raise CannotJudge("the network learns nothing from these samples: see cannot-overfit-batch")
            with subject.snapshot() as snapshot:
                layers = order_of_layers(subject, snapshot, batch)
            factor = 8 if hidden_width(layers) <= 8 else 4
            wide = self._best(subject, batch, clock, lambda: widen(subject, layers, factor))
            data |= {"factor": factor, "width": hidden_width(layers), "wide": wide[0]}
            plots.append(_plot(f"{factor} times as wide", wide[1]))
        return Result(data, plots)

    def _best(
        self, subject: Subject, batch: Batch, clock: Clock, change: Callable[[], None]
    ) -> tuple[dict[str, Any], list[float]]:
        tried = []
        for number, rate in enumerate(self.rates):
            clock.tick(number / len(self.rates))
            tried.append(self._attempt(subject, batch, rate, clock, change))
            if tried[-1][0]["enough"]:
                return tried[-1]
        return min(tried, key=lambda attempt: float(attempt[0]["remaining"]))

    def _attempt(
        self, subject: Subject, batch: Batch, rate: float, clock: Clock, change: Callable[[], None]
    ) -> tuple[dict[str, Any], list[float]]:
        setting = Setting.calm("Adam", rate)
        with subject.snapshot() as snapshot, setting.around(subject):
            try:
                change()
                first = look(snapshot, batch)
            except RuntimeError as error:
                raise CannotJudge(
                    "a wider copy can't be built: the code depends on the layers' widths"
                ) from error
            known = scale(first, first)
            floor = known.floor or 0.0
            low = floor + 0.5 * self.enough * (reference(first, floor, known.constant) - floor)
            optimizer = Adam([p for p in subject.model.parameters() if p.requires_grad], lr=rate)
            losses = train(
                subject,
                snapshot,
                [batch],
                self.steps,
                setting,
                clock,
                until=lambda v: v <= low,
                optimizer=optimizer,
            )
            last = look(snapshot, batch) if math.isfinite(losses[-1]) else Look(math.inf)
        return _told(first, last, losses, rate, self.enough), losses


def _told(first: Look, last: Look, losses: list[float], rate: float, enough: float) -> dict[str, Any]:
    where = scale(first, last)
    if where.floor is None and math.isfinite(last.loss):
        raise CannotJudge(UNKNOWN)
    left = remaining(first, last, where.floor, where.constant)
    third = losses[-max(len(losses) // 3, 1)]
    still = third - losses[-1]  # by how much it fell in the last third
    above = losses[-1] - (where.floor or 0.0)
    return {
        "rate": rate,
        "start": first.loss,
        "end": last.loss,
        "remaining": left,
        "accuracy": last.accuracy,
        "falling": still / above if above > 0 else 0.0,
        "steps": len(losses),
        "enough": left <= enough or (last.accuracy or 0.0) >= 0.97,
    }


def _plot(how: str, losses: list[float]) -> Plot:
    return Plot(f"loss on the same samples, {how}", list(range(len(losses))), losses)
