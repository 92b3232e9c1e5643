"""DATA005 unshuffled-data

## What it detects
Training data that is sorted by its labels: neighbours in a batch nearly always have the same class, and
batch after batch begins with the class of the one before. A loader that returns mixed labels in the same
order in every epoch is mentioned as advice. `clew data` checks the order of the labels in the dataset,
and the first batches that the loader's sampler makes.

## Why is this bad?
Stochastic gradient descent assumes that a batch is a random sample of the data. If all of one class
comes first, then all of the next, the model learns to predict the current class and forgets the one
before; the loss looks small within a class and jumps at every change.

## How to fix
`DataLoader(dataset, batch_size=32, shuffle=True)`; in a hand-written loop draw a new
`torch.randperm(len(x))` in every epoch.

## Known problems
Only data with one class per sample is checked: text, time series and regression data may be ordered for
good reason. The order is compared with a random order of the classes seen so far, so nothing is reported
while only the first class has been seen.

## References
- Bottou, Stochastic gradient descent tricks, 2012: shuffle the training examples.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.data_feed import training_loaders
from clew.checks.evidence.label_order import LabelOrder, label_orders
from clew.checks.evidence.survey_facts import place_of, samples_read, training, was_surveyed
from clew.checks.needs import any_of
from clew.checks.run_view import RunView
from clew.checks.wording import too_few
from clew.records import signals
from clew.records.dataset_survey import LabelSurvey, SampleOrder
from clew.records.facts.document_facts import SurveyFact
from clew.records.facts.step_facts import LoaderFact
from clew.records.finding import Evidence, Finding, Severity


@dataclass(frozen=True)
class UnshuffledData(Check):
    id = "DATA005"
    name = "unshuffled-data"
    needs = (any_of(signals.LABEL_SWITCHES, SurveyFact),)

    groups = ("data-faults",)

    samples: int = 8  # sampled batches before the order is checked
    batch: int = 4  # labels in a batch; fewer have too few neighbours
    mixing: float = 0.25  # differing neighbours over those of a random order; random data stays above 0.7
    by_chance: float = 0.1  # share of differing neighbours in a random order; less: nearly all one class
    lumping: float = 0.3  # how uneven batches are; positives before negatives in each batch give 0
    runs: float = 0.5  # halfway between a random order of batches (0) and a sorted one (1)
    epochs: int = 2  # passes over the data before an unchanging order is reported

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        found = list(self._recorded(run))
        yield from found or self._surveyed(run)

    def _recorded(self, run: RunView) -> Iterator[Finding]:
        """In the batches that were trained on."""
        loader = next(iter(training_loaders(run)), None)
        for order in label_orders(run):
            if not self._judgeable(order):
                continue
            shuffled = loader is not None and loader.shuffle is True
            is_sorted = order.mixing <= self.mixing and order.runs >= self.runs
            if is_sorted and order.lumping >= self.lumping and not shuffled:
                yield self._sorted(order, loader)
            elif loader is not None and self._keeps_order(run, loader):
                yield self._same_order(order, loader)

    def _surveyed(self, run: RunView) -> Iterator[Finding]:
        for survey in training(run):
            said, order = survey.labels, survey.order
            if said is None or order is None or order.shuffled or not self._in_classes(said, order):
                continue
            overall = said.counts[0].samples / said.samples
            lumping = (order.lean - overall) / (1 - overall) if overall < 1 else 0.0
            mixing = min(said.switches, order.switches) / said.by_chance
            if mixing <= self.mixing and lumping >= self.lumping and self._one_after_another(said, order):
                yield self.finding(
                    Severity.WARNING,
                    message=f"{survey.split} returns its samples sorted by label: "
                    f"{order.switches:.0%} of neighbouring samples differ in class, "
                    f"{said.by_chance:.0%} would in random order",
                    fix=f"DataLoader(dataset, batch_size={order.batch_size}, shuffle=True)",
                    site=place_of(survey),
                    step=0,
                    evidence=[
                        Evidence(f"{order.sampler or 'no sampler'}, {order.batches} batches checked"),
                        samples_read(survey),
                    ],
                )

    def _in_classes(self, said: LabelSurvey, order: SampleOrder) -> bool:
        several = said.kind == "class" and said.classes > 1 and said.by_chance >= self.by_chance
        return several and order.batch_size >= self.batch and order.batches >= 2

    def _one_after_another(self, said: LabelSurvey, order: SampleOrder) -> bool:
        """The dataset itself is sorted, or batch after batch begins with the class of the one before."""
        if order.sampler == "SequentialSampler":
            return said.switches <= self.mixing * said.by_chance
        in_a_row = (order.runs - (1 - said.by_chance)) / said.by_chance
        return order.batches >= self.samples and in_a_row >= self.runs

    def _judgeable(self, order: LabelOrder) -> bool:
        enough = order.samples >= self.samples and order.count.median >= self.batch
        return enough and order.classes > 1 and order.by_chance >= self.by_chance

    def _sorted(self, order: LabelOrder, loader: LoaderFact | None) -> Finding:
        return self.finding(
            Severity.WARNING,
            message=f"the training data is sorted by label: {order.switches.median:.0%} of "
            f"neighbouring samples differ in class, {order.by_chance:.0%} would in random order",
            fix=_fix(loader),
            site=loader.site if loader is not None else order.site,
            step=int(order.switches.steps[0]),
            evidence=[
                order.switches.evidence("share of neighbours in the batch whose labels differ"),
                order.first.evidence("label of each batch's first sample"),
            ],
        )

    def _keeps_order(self, run: RunView, loader: LoaderFact) -> bool:
        if loader.sampler != "SequentialSampler" or not loader.has_several_batches:
            return False
        seen = sum(float(series.values.sum()) for _, series in run.series(signals.BATCH_SIZE))
        return seen >= self.epochs * (loader.length or 0)

    def _same_order(self, order: LabelOrder, loader: LoaderFact) -> Finding:
        return self.finding(
            Severity.ADVICE,
            message="the training data comes in the same order in every epoch",
            fix=_fix(loader),
            site=loader.site,
            step=int(order.switches.steps[0]),
            evidence=Evidence(f"{loader.sampler} over {loader.length} samples, shuffle=False"),
        )

    def unjudged(self, run: RunView) -> str | None:
        most = max((order.samples for order in label_orders(run)), default=0)
        return None if was_surveyed(run) else too_few(most, self.samples, "sampled batches of classes")


def _fix(loader: LoaderFact | None) -> str:
    if loader is None:
        return "order = torch.randperm(len(x)); x, y = x[order], y[order]  # again in every epoch"
    return f"DataLoader(dataset, batch_size={loader.batch_size}, shuffle=True)"
