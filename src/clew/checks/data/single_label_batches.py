"""DATA006 single-label-batches

## What it detects
Batches that contain a single class each, while the class changes from batch to batch. `clew data` checks
the batches that the loader's sampler would make.

## Why is this bad?
Each step pulls the whole model towards one class, and the next step towards another: the
gradient of a batch says nothing about how to tell classes apart. BatchNorm makes it worse,
since it learns to tell the batches apart instead.

## How to fix
Mix the classes within a batch: shuffle samples, not groups of them. A batch sampler that draws a
class first should draw several.

## Known problems
Discriminators get real and generated samples in separate batches on purpose: labels that did not come
from the loader are ignored if a loss is called more than once in a step.

## References
- Ioffe and Szegedy, Batch Normalization, 2015: the statistics of a batch stand for the data's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.data_feed import training_loaders
from clew.checks.evidence.label_order import label_orders
from clew.checks.evidence.survey_facts import place_of, samples_read, training, was_surveyed
from clew.checks.needs import any_of
from clew.checks.run_view import RunView
from clew.checks.wording import too_few
from clew.records import signals
from clew.records.dataset_survey import DatasetSurvey
from clew.records.facts.document_facts import SurveyFact
from clew.records.finding import Evidence, Finding, Severity


@dataclass(frozen=True)
class SingleLabelBatches(Check):
    id = "DATA006"
    name = "single-label-batches"
    needs = (any_of(signals.LABEL_TOP_SHARE, SurveyFact),)

    groups = ("data-faults",)
    caused_by = ("unshuffled-data", "constant-target")

    samples: int = 8  # sampled batches before the check runs
    batch: int = 4  # labels in a batch; smaller ones contain one class by chance
    single: float = 0.9  # share of the batches that contain only one class
    by_chance: float = 0.1  # share of differing neighbours in a random order; less: nearly all one class
    drawn: int = 4  # batches of the sampler; so many of one class are not chance
    runs: float = 0.5  # with more, the batches are sorted, which is another fault

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        found = list(self._recorded(run))
        yield from found or self._surveyed(run)

    def _recorded(self, run: RunView) -> Iterator[Finding]:
        """In the batches that were trained on."""
        loader = next(iter(training_loaders(run)), None)
        for order in label_orders(run):
            if order.samples < self.samples or order.count.median < self.batch or order.classes < 2:
                continue
            in_order = order.runs >= self.runs and not (loader is not None and loader.shuffle)
            if order.by_chance < self.by_chance or order.single_share < self.single or in_order:
                continue
            yield self.finding(
                Severity.WARNING,
                message=f"{order.single_share:.0%} of the batches contain only one class, out of "
                f"{order.classes} classes",
                fix="DataLoader(dataset, batch_size=…, shuffle=True)  # mixes classes within a batch",
                site=loader.site if loader is not None else order.site,
                step=int(order.top.steps[0]),
                evidence=[
                    order.top.evidence("share of the most frequent class in a batch"),
                    order.first.evidence("label of each batch's first sample"),
                ],
            )

    def _surveyed(self, run: RunView) -> Iterator[Finding]:
        for survey in training(run):
            said, order = survey.labels, survey.order
            if said is None or order is None or said.classes < 2 or said.by_chance < self.by_chance:
                continue
            enough = order.batches >= self.drawn and order.batch_size >= self.batch
            if not enough or order.single < self.single * order.batches or self._is_ordered(survey):
                continue
            yield self.finding(
                Severity.WARNING,
                message=f"{order.single} of the first {order.batches} batches of {survey.split} contain "
                f"only one class, out of {said.classes} classes",
                fix="DataLoader(dataset, batch_size=…, shuffle=True)  # mixes classes within a batch",
                site=place_of(survey),
                step=0,
                evidence=[
                    Evidence(f"made by {order.sampler or 'the sampler'}, batch size {order.batch_size}"),
                    samples_read(survey),
                ],
            )

    def _is_ordered(self, survey: DatasetSurvey) -> bool:
        """Sorted data, which is another fault."""
        said, order = survey.labels, survey.order
        if said is None or order is None or order.shuffled:
            return False
        in_a_row = (order.runs - (1 - said.by_chance)) / said.by_chance
        return order.sampler == "SequentialSampler" or in_a_row >= self.runs

    def unjudged(self, run: RunView) -> str | None:
        most = max((order.samples for order in label_orders(run)), default=0)
        return None if was_surveyed(run) else too_few(most, self.samples, "sampled batches of classes")
