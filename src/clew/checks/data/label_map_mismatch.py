"""DATA013 label-map-mismatch

## What it detects
An evaluation in which the model is systematically wrong: most samples of a class are predicted as one
and the same other class, a different one for each class, while training goes well.

## Why is this bad?
The two splits number their classes differently, so the score says nothing about the model. It is usually
far below chance, which ordinary errors can't explain.

## How to fix
Make one mapping from class names to numbers, from the training data, and use it for both: `classes =
sorted(set(train_names)); index = {name: i for i, name in enumerate(classes)}`. A folder that lacks a
class numbers the rest differently.

## Known problems
It needs the labels that the evaluation's loader returns or that its loss call gets.

## References
- torchvision docs, datasets.ImageFolder: classes are numbered by the sorted folder names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.data_feed import source_site, sources
from clew.checks.run_view import RunView
from clew.records import signals
from clew.records.facts.loss_facts import ConfusionFact
from clew.records.finding import Evidence, Finding, Severity
from clew.records.site import Site

Counts = Mapping[tuple[int, int], int]  # (label, prediction) -> samples


@dataclass(frozen=True)
class LabelMapMismatch(Check):
    id = "DATA013"
    name = "label-map-mismatch"
    withdrawal = "later evaluations contradict it"
    needs = (
        ConfusionFact,
        signals.LABEL_ACCURACY,
    )

    caused_by = ("train-mode-in-evaluation", "train-val-preprocessing-mismatch")

    samples: int = 40  # evaluated samples before the check runs
    train: float = 0.7  # accuracy in training that shows that the model has learned
    below: float = 0.5  # largest accuracy in evaluation, as a share of what a renumbering would give
    renumbered: float = 0.6  # least accuracy in evaluation after the best renumbering of the classes

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        trained = [s.finite().last(5).median for _, s in run.series(signals.LABEL_ACCURACY, "train")]
        if not trained or not max(trained) >= self.train:
            return
        for fact in reversed(run.known(ConfusionFact)):
            counts = {(label, guess): n for label, guess, n in fact.counts if min(label, guess, n) >= 0}
            total = sum(counts.values())
            if total < self.samples:
                continue
            right = sum(n for (a, b), n in counts.items() if a == b) / total
            mapping, found = _renumbering(counts)
            if found / total >= self.renumbered and right <= self.below * found / total:
                yield self._finding(run, fact, right, found / total, mapping, max(trained))
            return

    def _finding(
        self,
        run: RunView,
        fact: ConfusionFact,
        right: float,
        renumbered: float,
        mapping: Mapping[int, int],
        trained: float,
    ) -> Finding:
        moved = ", ".join(f"{a} is predicted as {b}" for a, b in sorted(mapping.items()) if a != b)
        source = next((s for s in sources(run) if (s.source, s.root) == (fact.source, fact.root)), None)
        return self.finding(
            Severity.ERROR,
            message=f"evaluation gets {right:.0%} right, training {trained:.0%}: classes are numbered "
            "differently in the two",
            fix="index = {name: i for i, name in enumerate(sorted(set(train_names)))}  # one for both splits",
            site=source_site(run, source) if source else Site("", phase="eval", root=fact.root),
            step=fact.step,
            evidence=[
                Evidence(f"with the classes renumbered, {renumbered:.0%} would be right"),
                Evidence(f"class {moved}"),
            ],
        )


def _renumbering(counts: Counts) -> tuple[dict[int, int], int]:
    """The one-to-one mapping that greedily explains most samples, and how many these are."""
    mapping: dict[int, int] = {}
    found = 0
    for (label, predicted), n in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        if label not in mapping and predicted not in mapping.values():
            mapping[label] = predicted
            found += n
    return mapping, found
