"""Would more samples help? Trains the user's model on a quarter, a half and all of the samples."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from clew.labs.experiments.base import Experiment, Plot, Result
from clew.labs.experiments.tools.labelled_samples import split
from clew.labs.snapshot.sample_pool import Pool, cut, pool
from clew.labs.snapshot.step_batch import StepBatch
from clew.labs.snapshot.step_snapshot import StepSnapshot
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge, Clock, OutOfTime
from clew.records.facts.experiment_facts import SourceLine
from clew.records.facts.learning_experiment_facts import LearningCurve, TooFewExamplesFact


@dataclass(frozen=True)
class GrowingSubsets(Experiment):
    name = "too-few-examples"
    question = "would more samples help?"
    rank = 52

    least: int = 32  # samples: fewer can't be divided
    parts: tuple[float, ...] = (0.25, 0.5, 1.0)  # of those that are not held out
    held_out: float = 0.25  # share of the samples
    most: int = 400  # samples held out
    seeds: int = 3
    few: int = 150  # samples, below which the splits differ so much that more of them are needed
    seeds_of_few: int = 5
    steps: int = 72  # of each training, at most
    measurements: int = 4  # on the samples held out, in each training; the best one counts
    judged: int = 4  # batches of them

    def run(self, subject: Subject, clock: Clock) -> Result:
        drawn = pool(subject, clock)
        self._must_be_all(drawn)
        subject.need_step()
        seeds = self.seeds if drawn.batch.size >= self.few else self.seeds_of_few
        self._must_be_quick(subject, drawn.batch, seeds, clock)
        curves: list[LearningCurve] = []
        try:
            for seed in range(seeds):
                sizes, curve = self._curve(subject, drawn.batch, seed, clock)  # sizes are always the same
                curves.append(curve)
        except OutOfTime:
            if len(curves) < self.seeds:
                raise
        means = [sum(c.held_out[n] for c in curves) / len(curves) for n in range(len(sizes))]
        found = TooFewExamplesFact(
            samples=drawn.batch.size,
            steps=self.steps,
            parameters=sum(p.numel() for p in subject.parameters()),
            sizes=tuple(sizes),
            curves=tuple(curves),
            line=SourceLine(*subject.line),
        )
        line = Plot(
            "loss on held-out samples, by number of training samples", sizes, means, "samples", "loss"
        )
        return Result(found, [line])

    def _must_be_all(self, drawn: Pool) -> None:
        if not drawn.drawn:
            raise CannotJudge("the number of samples is unknown", "train from a DataLoader")
        if not drawn.whole:
            raise CannotJudge(f"there are more samples than the {drawn.batch.size} that could be used")
        if drawn.batch.size < self.least:
            raise CannotJudge(
                f"{drawn.batch.size} samples are too few to split; at least {self.least} are needed"
            )

    def _curve(
        self, subject: Subject, batch: StepBatch, seed: int, clock: Clock
    ) -> tuple[list[int], LearningCurve]:
        """The best loss on held-out samples after training on growing parts of the rest, and their sizes."""
        into, out = split(batch, min(self.held_out, self.most / batch.size), seed)
        sizes, held_out, trained, start = [], [], [], math.nan
        held = cut(out, subject.batch().size)[: self.judged]
        for part in self.parts:
            rows = into.rows(range(max(2, round(part * into.size))))
            batches = cut(rows, subject.batch().size)
            with subject.snapshot(seed=seed) as snapshot:
                start = snapshot.loss_value(*held)
                best, loss = self._best(snapshot, batches, held, clock)
            sizes.append(rows.size)
            held_out.append(min(best, start))
            trained.append(loss)
        return sizes, LearningCurve(tuple(held_out), tuple(trained), start)

    def _best(
        self, snapshot: StepSnapshot, batches: list[StepBatch], held: list[StepBatch], clock: Clock
    ) -> tuple[float, float]:
        """Early stopping: the lowest loss on the held-out samples, and the training loss at that point."""
        best = (math.inf, math.inf)
        worse = 0
        for _ in range(self.measurements):
            snapshot.train(batches, self.steps // self.measurements, on_step=lambda *_: clock.tick())
            now = snapshot.loss_value(*held), snapshot.loss_value(*batches[: self.judged])
            if not math.isfinite(now[0]):
                raise CannotJudge("the loss became non-finite in a short training")
            worse = worse + 1 if now[0] > best[0] else 0
            best = min(best, now)
            if worse >= 2:
                break
        return best

    def _must_be_quick(self, subject: Subject, batch: StepBatch, seeds: int, clock: Clock) -> None:
        """Raise immediately rather than run out of time."""
        some = batch.first(subject.batch().size)
        with subject.snapshot() as snapshot:
            snapshot.train([some], 1)  # the first step is slower than the others
            began = time.monotonic()
            snapshot.train([some], 2, on_step=lambda *_: clock.tick())
            each = (time.monotonic() - began) / 2
        if each * self.steps * len(self.parts) * seeds > 2 * clock.left:
            raise CannotJudge(f"a training step takes {each:.2g} s: the experiment would take too long")
