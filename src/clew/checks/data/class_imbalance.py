"""DATA007 class-imbalance

## What it detects
One class that makes up nearly all of the training samples, with a loss that gives every sample the same
weight. It is a warning if the model misses most samples of the other classes, and advice otherwise.
`clew data` counts the labels of the dataset, and warns about classes that are evaluated but never
trained on.

## Why is this bad?
A model that always predicts the frequent class reaches 95% or 99% accuracy and a small loss, and the
gradient of the rare samples is lost. They are usually the ones that matter.

## How to fix
Weight the loss (`weight=` for cross_entropy, `pos_weight=` for binary losses) or draw rare samples more
often (`WeightedRandomSampler`), and watch recall or average precision instead of accuracy.

## Known problems
Rare classes that the model predicts well are not reported. Only data with one label per sample is
checked, not pixels, words and tags, where one class is frequent by nature.

## References
- He and Garcia, Learning from imbalanced data, 2009.
- King and Zeng, Logistic regression in rare events data, 2001.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.data_feed import ClassCounts, class_counts, is_weighted, training_loaders
from clew.checks.evidence.survey_facts import evaluation, place_of, samples_read, training, was_surveyed
from clew.checks.needs import any_of
from clew.checks.run_view import RunView
from clew.checks.wording import listed, too_few
from clew.records import signals
from clew.records.dataset_survey import DatasetSurvey, LabelSurvey, SampleOrder
from clew.records.facts.document_facts import SurveyFact
from clew.records.facts.loss_facts import LossFact
from clew.records.finding import Evidence, Finding, Severity
from clew.records.site import Site


@dataclass(frozen=True)
class ClassImbalance(Check):
    id = "DATA007"
    name = "class-imbalance"
    needs = (any_of(signals.LABEL_CLASSES, SurveyFact),)

    groups = ("data-faults",)
    caused_by = ("constant-target", "unshuffled-data")

    share: float = 0.9  # of the most frequent class; at nine to one, always predicting it looks good
    samples: int = 200  # labels counted before the check runs; the share's error is then 0.02
    found: float = 0.5  # share of the rare samples predicted right; below it they are missed
    rare: int = 8  # rare samples in the later part of the run that are needed to say whether they are missed

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        found = list(self._recorded(run))
        yield from found or self._surveyed(run)

    def _recorded(self, run: RunView) -> Iterator[Finding]:
        """In the batches that were trained on."""
        if any("Weighted" in loader.sampler for loader in training_loaders(run)):
            return
        for site, _ in run.series(signals.LABEL_CLASSES, "train"):
            counts = class_counts(run, site)
            if not counts or counts[-1].total < self.samples or len(counts[-1].counts) < 2:
                continue
            top, share = max(counts[-1].shares.items(), key=lambda item: (item[1], -item[0]))
            if share >= self.share and not is_weighted(run, site):
                yield self._finding(site, counts, top, share)

    def _surveyed(self, run: RunView) -> Iterator[Finding]:
        for survey in training(run):
            said, order = survey.labels, survey.order
            if said is None or said.kind != "class":
                continue
            unknown = self._never_trained(run, survey, said)
            if unknown is not None:
                yield unknown
            top = said.counts[0]
            share = top.samples / said.samples
            drawn = order.top_share if order is not None and order.batches and not _in_order(order) else share
            enough = said.samples >= self.samples and said.classes > 1 and min(share, drawn) >= self.share
            if enough and not _any_weights(run):
                yield self.finding(
                    Severity.ADVICE,
                    message=f"{share:.1%} of the labels of {survey.split} are class {top.what}",
                    fix="nn.CrossEntropyLoss(weight=len(y) / (classes * torch.bincount(y)))",
                    site=place_of(survey),
                    step=0,
                    evidence=[Evidence(f"labels: {_counted(said)}"), samples_read(survey)],
                )

    def _never_trained(self, run: RunView, survey: DatasetSurvey, said: LabelSurvey) -> Finding | None:
        """Classes of an evaluation split that a wholly read training split does not have."""
        known = {c.what for c in said.counts}
        for other in evaluation(run) if survey.whole and said.classes == len(said.counts) else ():
            theirs = other.labels
            if theirs is None or theirs.kind != "class":
                continue
            new = [c for c in theirs.counts if c.what not in known]
            if new and len(new) < theirs.classes and sum(c.samples for c in new) >= self.rare:
                names = listed([c.what for c in new], 8)
                return self.finding(
                    Severity.WARNING,
                    message=f"{other.split} has classes that {survey.split} does not have: {names}",
                    fix="split so that both parts have every class: train_test_split(…, stratify=y)",
                    site=place_of(other),
                    step=0,
                    evidence=[
                        Evidence(f"{survey.split}: {_counted(said)}"),
                        Evidence(f"{other.split}: {_counted(theirs)}"),
                    ],
                )
        return None

    def _finding(self, site: Site, counts: list[ClassCounts], top: int, share: float) -> Finding:
        recall = self._recall(counts, top)
        missed = recall is not None and recall < self.found
        last = counts[-1]
        said = "" if recall is None else f", and the model gets {recall:.0%} of the others right"
        classes = ", ".join(f"class {c}: {n}" for c, n in sorted(last.counts.items())[:10])
        return self.finding(
            Severity.WARNING if missed else Severity.ADVICE,
            message=f"{share:.1%} of the labels are class {top}{said}",
            fix=_fix(site.op or "", last, top),
            site=site,
            step=counts[0].step,
            evidence=Evidence(f"labels counted up to step {last.step}: {classes}"),
        )

    def _recall(self, counts: list[ClassCounts], top: int) -> float | None:
        """Rare samples predicted right: since the count before the last, or in all if these are too few."""
        last, none = counts[-1], ClassCounts(0, {}, {})
        for before in (counts[-2] if len(counts) > 1 else none, none):
            rare = sum(n - before.counts.get(c, 0) for c, n in last.counts.items() if c != top)
            right = sum(n - before.right.get(c, 0) for c, n in last.right.items() if c != top)
            if rare >= self.rare:
                return right / rare
        return None

    def unjudged(self, run: RunView) -> str | None:
        sites = [site for site, _ in run.series(signals.LABEL_CLASSES, "train")]
        most = max((c[-1].total for c in (class_counts(run, s) for s in sites) if c), default=0)
        return None if was_surveyed(run) else too_few(most, self.samples, "labels")


def _in_order(order: SampleOrder) -> bool:
    """Whether the data comes in its own order: then the first batches say nothing about the rest."""
    return order.sampler in ("", "SequentialSampler")


def _any_weights(run: RunView) -> bool:
    sites = [Site(file=fact.file, line=fact.line) for fact in run.known(LossFact)]
    return any(is_weighted(run, site) for site in sites)


def _counted(said: LabelSurvey) -> str:
    return ", ".join(f"class {c.what}: {c.samples:,}" for c in said.counts[:10])


def _fix(kind: str, counts: ClassCounts, top: int) -> str:
    rest = max(counts.total - counts.counts[top], 1)
    if kind.startswith("binary"):
        positive = max(counts.counts.get(1, 0), 1)
        weight = (counts.total - positive) / positive
        return f"nn.BCEWithLogitsLoss(pos_weight=torch.tensor({weight:.3g}))"
    if len(counts.counts) == 2:
        weights = [1.0 if c == top else counts.counts[top] / rest for c in sorted(counts.counts)]
        return f"nn.CrossEntropyLoss(weight=torch.tensor([{', '.join(f'{w:.3g}' for w in weights)}]))"
    return "nn.CrossEntropyLoss(weight=len(y) / (classes * torch.bincount(y)))"
