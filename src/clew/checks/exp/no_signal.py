"""EXP022 no-signal

## What it detects
Inputs that say nothing about their labels. Simple learners (linear and kernel ridge regression, nearest
neighbours) are cross-validated on the data as it is and on forty permutations of the labels. It is
reported if none of them does better than with permuted labels, and the program's own model, trained
briefly, memorises its samples but does no better on samples it has not seen.

## Why is this bad?
There is nothing to learn but the frequency of the labels. The training loss may still fall, because the
model memorises the samples; the validation loss never does.

## How to fix
Look at a few samples together with their labels. Were inputs and labels shuffled separately, read from
files in different orders, or joined on the wrong column? Do the inputs contain what the labels depend
on?

## Known problems
A simple learner can be too weak: it can't use the order of words, exact arithmetic or fine detail of an
image. So the program's own model is tried too. The finding still has two explanations: there is no
signal, or neither found it in so short a time. Targets for every position (segmentation, sequences) are
not checked.

## References
- Ojala and Garriga, Permutation tests for studying classifier performance, 2010.
- Zhang et al., Understanding deep learning requires rethinking generalization, 2017.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev

from clew.checks.base import Check
from clew.checks.evidence.experiment_outcome import curve
from clew.checks.run_view import RunView
from clew.records.facts.data_experiment_facts import LearnerScore, ModelSignal, NoSignalFact, PermutedLosses
from clew.records.finding import Evidence, Finding, Severity


@dataclass(frozen=True)
class NoSignal(Check):
    id = "EXP022"
    name = "no-signal"
    rank = 1430
    needs = (NoSignalFact,)
    confidence = "possible"

    # Labels that do not fit, or inputs of which nothing is left, tell a learner nothing.
    caused_by = (
        "labels-misaligned",
        "loader-corrupts-data",
        "excessive-augmentation",
        "dataset-mutates",
        "input-ignored",
        "constant-input",
    )

    deviations: float = 2.5  # of the best learner from permuted labels, in their standard deviations
    held_out: float = 2.5  # the same for the model's loss on samples it has not seen
    by_heart: float = 5.0  # the same on samples it was trained on: it must have learned something
    samples: int = 200  # samples; fewer leave room for a weak signal

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        found = run.outcome(NoSignalFact)
        if found is None or found.samples < self.samples or self._learned(found):
            return
        model = found.model
        if model is None or _gain(model.held_out) >= self.held_out or _gain(model.trained) < self.by_heart:
            return
        yield self.finding(
            Severity.WARNING,
            message=f"nothing in the inputs of {found.samples} samples predicts their labels: simple "
            "learners do no better than with the labels shuffled, and neither does the model on samples it "
            "has not seen",
            fix="look at samples with their labels: were they shuffled separately, or joined on the "
            "wrong column?",
            site=found.line.site,
            step=0,
            evidence=[*curve(run, self.name), *_evidence(found.scores, model)],
        )

    def _learned(self, found: NoSignalFact) -> bool:
        return not found.scores or max(s.deviations for s in found.scores) >= self.deviations

    def unjudged(self, run: RunView) -> str | None:
        found = run.outcome(NoSignalFact)
        if found is None or self._learned(found):
            return None
        if found.model is not None and _gain(found.model.held_out) >= self.held_out:
            return None
        return (
            "simple learners found nothing, but they may be too weak, and the model has not learned "
            "enough yet"
        )


def _gain(losses: PermutedLosses) -> float:
    """How far the real loss lies below that of permuted labels, in their standard deviations."""
    if not losses.permuted:
        return math.nan
    return (fmean(losses.permuted) - losses.real) / max(pstdev(losses.permuted), 1e-12)


def _evidence(scores: Sequence[LearnerScore], model: ModelSignal) -> Iterator[Evidence]:
    for score in scores:
        if score.permuted:
            yield Evidence(
                f"{score.learner} learner: correlation {score.real:.3f}; with permuted labels "
                f"{min(score.permuted):.3f} to {max(score.permuted):.3f}"
            )
    for losses, words in ((model.trained, "training samples"), (model.held_out, "unseen samples")):
        if losses.permuted:
            yield Evidence(
                f"the model after {model.steps} steps, {words}: loss {losses.real:.3g}; "
                f"{min(losses.permuted):.3g} to {max(losses.permuted):.3g} with permuted labels"
            )
