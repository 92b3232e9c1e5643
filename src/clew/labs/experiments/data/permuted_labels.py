"""Do the inputs predict the labels? Fits cheap learners to the real labels and to permuted ones."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from clew.labs.experiments.base import Experiment, Plot, Result
from clew.labs.experiments.tools.labelled_samples import (
    CLASSES,
    LabelledSamples,
    chance,
    labelled_samples,
    relabelled,
    split,
)
from clew.labs.experiments.tools.reference_learners import accuracy, scores
from clew.labs.experiments.tools.short_training import on_finite_steps
from clew.labs.snapshot.sample_pool import cut
from clew.labs.snapshot.step_batch import StepBatch
from clew.labs.snapshot.step_snapshot import StepSnapshot
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import Clock
from clew.records.facts.data_experiment_facts import ModelSignal, NoSignalFact, PermutedLosses
from clew.records.facts.experiment_facts import SourceLine


@dataclass(frozen=True)
class PermutedLabels(Experiment):
    name = "no-signal"
    question = "do the inputs predict the labels?"
    rank = 40

    least: int = 150  # samples; a correlation of 0.25 is three standard errors then
    permutations: int = 40  # of the labels
    clear: float = 5.0  # standard deviations above the permuted scores that count as an answer
    steps: int = 160  # of the model itself, where the learners find nothing
    seconds: float = 8.0  # for these
    held_out: float = 0.25  # share of the samples
    most: int = 256  # samples that the model is evaluated on

    def run(self, subject: Subject, clock: Clock) -> Result:
        samples = labelled_samples(subject, clock, self.least)
        found = scores(samples.learners, samples.labels.columns, self.permutations)
        clock.tick(0.3)
        best = max(found, key=lambda s: s.deviations)
        fact = NoSignalFact(
            samples=samples.batch.size,
            kind=samples.labels.kind,
            scores=tuple(found),
            chance=chance(samples.labels),
            accuracy=_accuracy(samples),
            model=self._model(subject, samples, clock) if best.deviations < self.clear else None,
            line=SourceLine(*subject.line),
        )
        ordered = sorted(best.permuted)
        plot = Plot(
            f"{best.learner} learner with permuted labels, sorted; {best.real:.3f} with the real labels",
            range(len(ordered)),
            ordered,
            "permutation",
            "correlation of prediction and label",
        )
        return Result(fact, [plot])

    def _model(self, subject: Subject, samples: LabelledSamples, clock: Clock) -> ModelSignal:
        """The user's own model: trained on one part, evaluated on it and on the rest."""
        into, out = split(samples.batch, self.held_out)
        batches = cut(into, min(subject.batch().size, into.size))
        with subject.snapshot() as snapshot:
            on_step = on_finite_steps(clock, min(self.seconds, clock.left / 2))
            losses = snapshot.train(batches, self.steps, on_step=on_step)
            return ModelSignal(len(losses), self._compared(snapshot, out), self._compared(snapshot, into))

    def _compared(self, snapshot: StepSnapshot, batch: StepBatch) -> PermutedLosses:
        batch = batch.first(self.most)
        generator = torch.Generator().manual_seed(0)
        orders = [torch.randperm(batch.size, generator=generator) for _ in range(20)]
        real = snapshot.loss_value(batch)
        return PermutedLosses(real, tuple(snapshot.loss_value(relabelled(batch, o)) for o in orders))


def _accuracy(samples: LabelledSamples) -> float | None:
    if samples.labels.kind != CLASSES:
        return None
    columns = samples.labels.columns
    return max(accuracy(learner.predict(columns), samples.labels.values) for learner in samples.learners)
