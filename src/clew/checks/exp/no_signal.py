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

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean, pstdev
from typing import Any

from clew.checks.base import Check
from clew.checks.evidence.experiment_outcome import curve, number, numbers, place
from clew.checks.evidence.recorded_facts import rows
from clew.checks.run_view import RunView
from clew.records.facts.data_experiment_facts import NoSignalFact
from clew.records.finding import Evidence, Finding, Severity


@dataclass(frozen=True)
class NoSignal(Check):
    id = "EXP022"
    name = "no-signal"
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
        data = run.experiment(self.name) or {}
        if number(data.get("samples")) < self.samples or self._learned(data):
            return
        model = data.get("model")
        if not isinstance(model, Mapping) or self._gain(model, "held_out") >= self.held_out:
            return
        if self._gain(model, "trained") < self.by_heart:
            return
        yield self.finding(
            Severity.WARNING,
            message=f"nothing in the inputs of {number(data.get('samples')):.0f} samples predicts their "
            "labels: "
            "simple learners do no better than with the labels shuffled, and neither does the model on "
            "samples it has not seen",
            fix="look at samples with their labels: were they shuffled separately, or joined on the "
            "wrong column?",
            site=place(data),
            step=0,
            evidence=[*curve(run, self.name), *_evidence(data, model)],
        )

    def _learned(self, data: Mapping[str, Any]) -> bool:
        found = [number(s.get("deviations")) for s in rows(data.get("scores"))]
        return not found or max(found) >= self.deviations

    def _gain(self, model: Mapping[str, Any], key: str) -> float:
        """How far the real loss lies below that of permuted labels, in their standard deviations."""
        found = model.get(key)
        read = found if isinstance(found, Mapping) else {}
        real, permuted = number(read.get("real")), numbers(read.get("permuted"))
        if not permuted:
            return float("nan")
        return (fmean(permuted) - real) / max(pstdev(permuted), 1e-12)

    def unjudged(self, run: RunView) -> str | None:
        data = run.experiment(self.name)
        if data is None or self._learned(data):
            return None
        model = data.get("model")
        if isinstance(model, Mapping) and self._gain(model, "held_out") >= self.held_out:
            return None
        return (
            "simple learners found nothing, but they may be too weak, and the model has not learned "
            "enough yet"
        )


def _evidence(data: Mapping[str, Any], model: Mapping[str, Any]) -> Iterator[Evidence]:
    for score in rows(data.get("scores")):
        permuted = numbers(score.get("permuted"))
        if permuted:
            yield Evidence(
                f"{score.get('learner')} learner: correlation {number(score.get('real')):.3f}; with permuted "
                f"labels {min(permuted):.3f} to {max(permuted):.3f}"
            )
    for key, words in (("trained", "training samples"), ("held_out", "unseen samples")):
        found = model.get(key)
        read = found if isinstance(found, Mapping) else {}
        permuted = numbers(read.get("permuted"))
        if permuted:
            yield Evidence(
                f"the model after {number(model.get('steps')):.0f} steps, {words}: loss "
                f"{number(read.get('real')):.3g}; {min(permuted):.3g} to {max(permuted):.3g} with "
                "permuted labels"
            )
