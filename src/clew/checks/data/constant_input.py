"""DATA003 constant-input

## What it detects
Input that does not vary: batches in which every value is the same, batches whose samples are all copies
of one another, samples that are mostly blank, or a table in which most columns never vary. `clew data`
looks for the same in the dataset.

## Why is this bad?
A model can't tell samples apart by what never varies. The best it can do with a constant input is to
predict the mean of the targets, and it does, without an error.

## How to fix
Print what the dataset returns for a few indices: `x0, x1 = dataset[0][0], dataset[1][0]`. Common causes
are integer division, a buffer that is allocated and never filled, a `__getitem__` that ignores its
index, and a normalisation that divides by the wrong constant.

## Known problems
Columns of a table are checked once there are many more samples than columns, since words and rare
categories are constant in most batches. Border pixels that never vary are ignored.

## References
- Karpathy, A Recipe for Training Neural Networks, 2019: become one with the data.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from clew.checks.base import Check
from clew.checks.evidence.data_feed import feeding_site
from clew.checks.evidence.survey_facts import place_of, samples_read, surveys, was_surveyed
from clew.checks.needs import any_of
from clew.checks.run_view import RunView
from clew.checks.wording import too_few
from clew.records import signals
from clew.records.dataset_survey import DatasetSurvey
from clew.records.facts.document_facts import SurveyFact
from clew.records.finding import Evidence, Finding, Severity
from clew.records.site import Site

FIX = "print(dataset[0][0], dataset[1][0])  # they must differ; then fix __getitem__ or the preprocessing"


@dataclass(frozen=True)
class ConstantInput(Check):
    id = "DATA003"
    name = "constant-input"
    withdrawal = "later batches differ"
    needs = (
        any_of(signals.SAMPLE_CONSTANT, SurveyFact),
        any_of(signals.SAMPLE_DISTINCT, SurveyFact),
        any_of(signals.SAMPLE_COUNT, SurveyFact),
    )

    groups = ("data-faults",)
    caused_by = ("dataset-mutates",)

    samples: int = 5  # sampled batches, all of which must show it
    batch: int = 4  # samples in a batch; in smaller ones copies may be an accident
    features: int = 8  # values in a sample; fewer may be equal by accident
    blank: float = 0.5  # share of a batch's samples with a single value
    columns: float = 0.75  # share of a table's columns that never vary over the run
    per_column: int = 20  # samples for each column of a table before its columns are checked

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        found = list(self._recorded(run))
        yield from found or self._surveyed(run)

    def _recorded(self, run: RunView) -> Iterator[Finding]:
        """In the batches that were trained on."""
        for site, counts in run.series(signals.SAMPLE_COUNT, "train"):
            found = self._judge(run, site, float(np.median(counts.values)))
            if found is not None and len(counts) >= self.samples:
                severity, message, evidence = found
                yield self.finding(
                    severity,
                    message=message,
                    fix=FIX,
                    site=feeding_site(run, site),
                    step=int(counts.steps[0]),
                    evidence=evidence,
                )

    def _surveyed(self, run: RunView) -> Iterator[Finding]:
        for survey in surveys(run):
            result = self._in_dataset(survey)
            if result is not None:
                yield self.finding(
                    result[0],
                    message=result[1],
                    fix=FIX,
                    site=place_of(survey),
                    step=0,
                    evidence=samples_read(survey),
                )

    def _in_dataset(self, survey: DatasetSurvey) -> tuple[Severity, str] | None:
        """The same for all samples that were read."""
        field = survey.main
        if field is None or field.samples < max(self.batch, self.samples):
            return None
        if field.low is not None and field.low == field.high:
            return Severity.ERROR, f"every value of field {field.name} is {field.low:.4g}, in every sample"
        if survey.exact.copies >= survey.samples_read - 1 > 0:
            return Severity.ERROR, f"all {survey.samples_read:,} samples that were read are the same"
        if field.features >= self.features and field.blank >= self.blank * field.samples:
            share = field.blank / field.samples
            return Severity.WARNING, f"{share:.0%} of the samples are blank: all their values are the same"
        many = field.samples >= self.per_column * field.features >= self.per_column * self.features
        if field.kind == "vector" and many and field.constant >= self.columns * field.features:
            share = field.constant / field.features
            return Severity.WARNING, f"{share:.0%} of the {field.features} columns of the input never vary"
        return None

    def _judge(self, run: RunView, site: Site, batch: float) -> tuple[Severity, str, Evidence] | None:
        constant = run.at_site(signals.SAMPLE_CONSTANT, site)
        distinct = run.at_site(signals.SAMPLE_DISTINCT, site)
        features = run.at_site(signals.SAMPLE_FEATURES, site)
        if constant is None or distinct is None or features is None or batch < self.batch:
            return None
        counts = run.at_site(signals.SAMPLE_COUNT, site)
        # One distinct sample in each batch; the share of it was rounded.
        alike = counts is not None and bool((distinct.values * counts.values <= 1.01).all())
        same_value = _spread(run, site)
        if same_value is not None and alike:
            evidence = constant.evidence("share of samples with a single value")
            text = f"every input of the model is {same_value:.4g}, in every sample of every batch"
            return Severity.ERROR, text, evidence
        if alike:
            evidence = distinct.evidence("share of the samples of a batch that differ from one another")
            return Severity.ERROR, f"the {batch:.0f} samples of a batch are all the same", evidence
        wide = features.median >= self.features
        if wide and constant.share_below(self.blank) == 0.0:
            text = f"{constant.median:.0%} of the samples are blank: all their values are the same"
            return Severity.WARNING, text, constant.evidence("share of blank samples in a batch")
        return self._columns(run, site, features.median, batch)

    def _columns(
        self, run: RunView, site: Site, features: float, batch: float
    ) -> tuple[Severity, str, Evidence] | None:
        series = run.at_site(signals.SAMPLE_CONSTANT_FEATURES, site)
        if series is None or not self.features <= features or not _is_table(run, site):
            return None
        share = float(series.values[-1])
        if len(series) * batch < self.per_column * features or not share >= self.columns:
            return None
        text = f"{share:.0%} of the {features:.0f} columns of the input never vary"
        return Severity.WARNING, text, series.evidence("share of columns that have not varied so far")

    def unjudged(self, run: RunView) -> str | None:
        most = run.longest(signals.SAMPLE_COUNT, "train")
        return None if was_surveyed(run) else too_few(most, self.samples, "sampled batches")


def _spread(run: RunView, site: Site) -> float | None:
    """The one value of a floating-point input, if it has only one."""
    low, high = run.at_site(signals.INPUT.min, site), run.at_site(signals.INPUT.max, site)
    if low is None or high is None:
        return None
    values = np.concatenate([low.values, high.values])
    return float(values[0]) if len(values) and (values == values[0]).all() else None


def _is_table(run: RunView, site: Site) -> bool:
    """Only inputs of two dimensions have a spread of features."""
    spread = run.at_site(signals.INPUT_FEATURE_SPREAD, site)
    return spread is not None and bool((spread.values != 1.0).any())
