"""EXP024 excessive-augmentation

## What it detects
Random transforms that destroy too much of the samples. On a copy of the dataset they are switched off,
and the program's own model is trained for a few dozen steps with and without them, over three seeds. It
is reported if training with them makes less than a third of the progress on held-out samples without
augmentation, and the transforms change a sample about as much as two samples differ.

## Why is this bad?
Augmentation should make variants that a person would still recognise. Beyond that the labels no longer
match the inputs: the model learns slowly or not at all, and on data unlike what it will see in use.

## How to fix
Look at a few augmented samples. Lower the strength or the probability of the transforms named, one at a
time; check units (degrees or radians, 0–1 or 0–255) and whether one is applied twice.

## Known problems
Only transforms in dataset attributes whose names contain `transform` or `aug` are found; randomness
inside `__getitem__` itself or in the training step can't be switched off and is not checked. Strong
augmentation may pay off in a long training: a short one shows only the beginning.

## References
- Shorten and Khoshgoftaar, A survey on image data augmentation for deep learning, 2019.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from clew.checks.base import Check
from clew.checks.evidence.experiment_outcome import curve
from clew.checks.run_view import RunView
from clew.checks.wording import listed
from clew.records.facts.data_experiment_facts import AugmentationComparison, ExcessiveAugmentationFact
from clew.records.finding import Evidence, Finding, Severity


@dataclass(frozen=True)
class ExcessiveAugmentation(Check):
    id = "EXP024"
    name = "excessive-augmentation"
    needs = (ExcessiveAugmentationFact,)

    caused_by = ("labels-misaligned", "dataset-mutates")

    progress: float = 0.33  # share of the progress without it; flips, crops and mild noise leave 0.7 to 1
    distance: float = 0.5  # between a sample and its augmented copy, over that between two samples
    learned: float = 0.1  # share of the loss by which it must fall without augmentation, to compare with

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        found = run.outcome(ExcessiveAugmentationFact)
        if found is None or not self._judged(found.trials) or found.distance < self.distance:
            return
        shares = [_share(t) for t in found.trials]
        if not all(share < self.progress for share in shares):
            return
        on, off = median(t.held_on for t in found.trials), median(t.held_off for t in found.trials)
        yield self.finding(
            Severity.WARNING,
            message=f"augmentation leaves little to learn: after {found.trials[0].steps} steps "
            f"the loss on unaugmented samples is {on:.3g} with it and {off:.3g} without",
            fix=f"lower the strength or the probability of {listed(list(found.transforms))}",
            site=found.line.site,
            step=0,
            evidence=[
                *curve(run, self.name, 0),
                *curve(run, self.name, 1),
                Evidence(f"share of the progress that remains: {_percentages(shares)} (by seed)"),
                Evidence(
                    f"an augmented sample is {found.distance:.2f} times as far from the original as another "
                    "sample is"
                ),
            ],
        )

    def _judged(self, trials: Sequence[AugmentationComparison]) -> bool:
        """Whether every training made progress to compare with."""
        gains = [(t.start - t.held_off, abs(t.start)) for t in trials]
        return bool(trials) and all(gain > 0 and gain >= self.learned * start for gain, start in gains)

    def unjudged(self, run: RunView) -> str | None:
        found = run.outcome(ExcessiveAugmentationFact)
        if found is not None and found.random and not self._judged(found.trials):
            return "even without augmentation, the model learned nothing in so few steps"
        return None


def _share(trial: AugmentationComparison) -> float:
    return (trial.start - trial.held_on) / (trial.start - trial.held_off)


def _percentages(shares: list[float]) -> str:
    return ", ".join(f"{share:.0%}" for share in shares)
