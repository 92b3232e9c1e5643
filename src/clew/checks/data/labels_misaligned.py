"""DATA012 labels-misaligned

## What it detects
Labels that no longer belong to their inputs. Either the same sample has a different label in a later
epoch, or the loss stays at the level of guessing, and neither the class means nor the nearest neighbours
of the inputs are related to the labels. `clew check` compares directly the pairs that training gets with
those that the dataset returns for the same samples.

## Why is this bad?
There is nothing to learn. The loss settles at the entropy of the classes (ln of their number, if
they are equally frequent), with any model, learning rate or optimizer.

## How to fix
Shuffle inputs and labels with the same permutation: `order = torch.randperm(len(x)); x, y =
x[order], y[order]`. Put both into one dataset, so that one index fetches both.

## Known problems
The second case is an interpretation: inputs that really say nothing about their labels look the same.
`clew check --only labels-misaligned,no-signal train.py` decides: it compares with the dataset's own
pairs, and trains a simple learner on the labels as they are and on permuted ones.

## References
- Zhang et al., Understanding deep learning requires rethinking generalization, 2017.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from clew.checks.base import Check
from clew.checks.evidence.data_feed import class_counts, feeding_site
from clew.checks.evidence.experiment_outcome import or_nan
from clew.checks.needs import any_of
from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.records import signals
from clew.records.facts.data_experiment_facts import LabelsMisalignedFact, MatchedSamples
from clew.records.facts.loss_facts import LabelSignalFact
from clew.records.finding import Evidence, Finding, Severity
from clew.records.site import Site

ONE_ORDER = "order = torch.randperm(len(x)); x, y = x[order], y[order]  # one order for both"


@dataclass(frozen=True)
class RelabelledSamples:
    """Repeated samples with another label."""

    changed: float = 0.3  # share of repeated samples with another label; corrections change fewer
    batches: int = 3  # batches with repeated samples
    distinct: float = 0.99  # share of samples in a batch that differ; tables of few categories contain copies

    def find(self, check: Check, run: RunView) -> Iterator[Finding]:
        for site, series in run.series(signals.SAMPLE_RELABELLED, "train"):
            came_again = series.finite()
            if self._copies(run, site):
                continue  # what looks alike may rightly have different labels
            if len(came_again) >= self.batches and came_again.median >= self.changed:
                yield self._finding(check, run, site, came_again)
                return

    def seen(self, run: RunView) -> bool:
        """Whether enough samples were repeated."""
        return any(len(s.finite()) >= self.batches for _, s in run.series(signals.SAMPLE_RELABELLED, "train"))

    def _finding(self, check: Check, run: RunView, site: Site, series: Series) -> Finding:
        return check.finding(
            Severity.ERROR,
            message=f"{series.median:.0%} of the repeated samples have a different label than before",
            fix=ONE_ORDER,
            site=feeding_site(run, site),
            step=int(series.steps[0]),
            evidence=series.evidence("share of repeated samples whose label has changed"),
        )

    def _copies(self, run: RunView, site: Site) -> bool:
        distinct = run.at_site(signals.SAMPLE_DISTINCT, site)
        return distinct is None or distinct.median < self.distinct


@dataclass(frozen=True)
class LossAtChance:
    """A loss that stays at the level of guessing, with labels that have nothing to do with the inputs."""

    steps: int = 60  # steps, after which a loss at chance counts as stuck
    near: float = 0.05  # distance of the loss from the entropy of the classes, as a share of it
    separation: float = 3.0  # variance between classes over that of random labels; real data has 5 to 500
    deviations: float = 3.0  # of the agreement with the nearest neighbour from chance, in standard errors
    moving: float = 1e-5  # update over weight; below it, the optimizer is what does not move

    def find(self, check: Check, run: RunView) -> Iterator[Finding]:
        found = next(iter(run.known(LabelSignalFact)), None)
        if found is None or not self._unrelated(run, found):
            return
        for site, _ in run.series(signals.LABEL_CLASSES, "train"):
            counts = class_counts(run, site)
            entropy = counts[-1].entropy if counts else 0.0
            losses = max((s for _, s in run.series(signals.LOSS, "train")), key=len, default=None)
            if losses is None or entropy <= 0 or not self._is_stuck(run, losses, entropy):
                continue
            yield check.finding(
                Severity.WARNING,
                message=f"the loss stays at {losses.last(20).median:.3f}, the level of guessing "
                f"({entropy:.3f}); "
                "the labels are unrelated to the inputs: were the two shuffled separately?",
                fix=f"{ONE_ORDER}; to find out: clew check --only labels-misaligned,no-signal train.py",
                site=site,
                step=int(losses.steps[0]),
                evidence=[
                    losses.evidence(f"training loss; the entropy of the classes is {entropy:.3f}"),
                    Evidence(
                        f"{or_nan(found.neighbours):.0%} of {found.samples} samples have the label of their "
                        f"nearest neighbour, {or_nan(found.chance):.0%} would by chance"
                    ),
                ],
            )
            return

    def _unrelated(self, run: RunView, found: LabelSignalFact) -> bool:
        """Whether the inputs say nothing about the labels, after enough steps."""
        if run.steps < self.steps or found.separation is None or found.deviations is None:
            return False
        return found.separation < self.separation and found.deviations < self.deviations

    def _is_stuck(self, run: RunView, losses: Series, entropy: float) -> bool:
        """Whether the loss stays at the entropy of the classes though the weights move."""
        late = losses.last(max(len(losses) // 2, 20)).finite()
        smooth = float(np.mean(late.values)) if len(late) else float("inf")
        return abs(smooth - entropy) <= self.near * entropy and self._moves(run)

    def _moves(self, run: RunView) -> bool:
        ratios = [s.median for _, s in run.series(signals.UPDATE_RATIO) if len(s.finite())]
        return bool(ratios) and float(np.median(ratios)) >= self.moving


@dataclass(frozen=True)
class PairsExperiment:
    """What the experiment must show: inputs that have other labels than in the dataset."""

    found: int = 20  # samples that must be found in the dataset again
    other: float = 0.05  # share of samples with another label than in the dataset; a data race gives fewer
    renamed: float = 0.95  # share that one renaming of the labels explains, such as counting from 1
    learned: float = 6.0  # what a learner gains from the dataset's pairs, in deviations of permuted labels
    lost: float = 2.0  # the same from the pairs of training; below it, nothing is left

    def find(self, check: Check, found: LabelsMisalignedFact) -> Iterator[Finding]:
        """In the experiment: inputs with labels that are not theirs."""
        for name, side in found.sides.items():
            if not self._is_apart(side):
                continue
            where = "in training" if name == "training" else "by the loader"
            yield check.finding(
                Severity.ERROR,
                message=f"{side.other} of {side.matched} samples have a different label {where} than in the "
                "dataset",
                fix=ONE_ORDER
                if name == "training"
                else "keep inputs and labels in one order in collate_fn: x, y = zip(*items)",
                site=found.line.site,
                step=0,
                evidence=Evidence(f"{side.matched} inputs were matched with the dataset by their values"),
                confidence="certain",
            )
            return
        yield from self._unlearnable(check, found)

    def _unlearnable(self, check: Check, found: LabelsMisalignedFact) -> Iterator[Finding]:
        """Inputs that differ each time: a learner finds signal in the dataset's pairs, none in training's."""
        learners = found.learners
        if learners is None or not self._is_lost(learners.dataset, learners.training):
            return
        yield check.finding(
            Severity.WARNING,
            message="a simple learner can learn the labels of the dataset's samples, but not those of "
            "the samples that training gets: are inputs and labels put into different orders?",
            fix=ONE_ORDER,
            site=found.line.site,
            step=0,
            evidence=Evidence(
                f"the learner's gain over permuted labels: {learners.dataset:.1f} standard deviations on the "
                f"dataset's pairs, {learners.training:.1f} on those of training"
            ),
        )

    def _is_apart(self, side: MatchedSamples) -> bool:
        """Whether the samples that were found again have labels that are not theirs."""
        enough = side.matched >= self.found and side.other >= self.other * side.matched
        return enough and side.consistent < self.renamed

    def _is_lost(self, there: float, here: float) -> bool:
        """Whether what a learner gains from the dataset's pairs is lost in those of training."""
        return not there < self.learned and here < self.lost


@dataclass(frozen=True)
class LabelsMisaligned(Check):
    id = "DATA012"
    name = "labels-misaligned"
    withdrawal = "later samples contradict it"
    needs = (
        any_of(signals.SAMPLE_RELABELLED, LabelsMisalignedFact),
        any_of(signals.LABEL_CLASSES, LabelsMisalignedFact),
    )

    caused_by = ("learning-faults",)
    not_caused_by = ("dead-units",)

    again: RelabelledSamples = field(default_factory=RelabelledSamples)
    chance: LossAtChance = field(default_factory=LossAtChance)
    pairs: PairsExperiment = field(default_factory=PairsExperiment)

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        tried = run.outcome(LabelsMisalignedFact)
        if tried is not None:
            yield from self.pairs.find(self, tried)
        else:
            relabelled = list(self.again.find(self, run))
            yield from relabelled or self.chance.find(self, run)

    def unjudged(self, run: RunView) -> str | None:
        if run.outcome(LabelsMisalignedFact) is not None:
            return None
        return None if self.again.seen(run) or run.has(LabelSignalFact) else "no sample was seen twice"
