"""DATA008 constant-target

## What it detects
Targets that are the same for every sample of every batch: one class only, or one number. `clew data`
looks for the same in the dataset; labels that were not seen in a loss only get a hint.

## Why is this bad?
There is nothing to learn but that constant. The loss falls to zero in a few steps, which looks like
success.

## How to fix
Print `y.unique()`, or `y.min(), y.max()`, of the whole training set. Common causes are a wrong column,
labels compared with the wrong type (`"1" == 1`), a split of sorted data, and a conversion that rounds to
zero.

## Known problems
Targets that the program creates itself (ones and zeros for a discriminator, zeros for a residual or a
contrastive loss) are constant on purpose: only targets from a loader are checked, or nonzero targets of
the only loss call in a step.

## References
- Karpathy, A Recipe for Training Neural Networks, 2019: become one with the data.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from clew.checks.base import Check
from clew.checks.evidence.data_feed import training_loaders
from clew.checks.evidence.loss_inputs import BINARY, CLASSES, REGRESSION
from clew.checks.evidence.survey_facts import place_of, samples_read, training, was_surveyed
from clew.checks.needs import any_of
from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.checks.wording import too_few
from clew.records import signals
from clew.records.dataset_survey import LABEL
from clew.records.facts.document_facts import SurveyFact
from clew.records.finding import Finding, Severity
from clew.records.site import Site


@dataclass(frozen=True)
class ConstantTarget(Check):
    id = "DATA008"
    name = "constant-target"
    withdrawal = "other labels came later"
    needs = (
        any_of(signals.TARGET.min, SurveyFact),
        any_of(signals.TARGET.max, SurveyFact),
        any_of(signals.TARGET_GIVEN, SurveyFact),
    )

    groups = ("data-faults",)

    samples: int = 10  # sampled batches, all of which must contain the same value
    labels: int = 50  # targets in all; fewer may be the same by chance
    epochs: float = 1.0  # passes over the loader's data: sorted data begins with one class

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        found = list(self._recorded(run))
        yield from found or self._surveyed(run)

    def _recorded(self, run: RunView) -> Iterator[Finding]:
        """In the batches that were trained on."""
        if len({(s.file, s.line) for s, _ in run.series(signals.TARGET_GIVEN, "train")}) != 1:
            return  # several losses: some of them may rightly have a constant target
        for site, given in run.series(signals.TARGET_GIVEN, "train"):
            low, high = run.at_site(signals.TARGET.min, site), run.at_site(signals.TARGET.max, site)
            if (
                site.op not in CLASSES + BINARY + REGRESSION
                or low is None
                or high is None
                or len(low) < self.samples
            ):
                continue
            values = np.concatenate([low.values, high.values])
            if (values == values[0]).all() and self._is_data(run, given, float(values[0]), site):
                yield self._finding(run, site, low, float(values[0]))

    def _surveyed(self, run: RunView) -> Iterator[Finding]:
        used = any((s.values == 1.0).any() for _, s in run.series(signals.TARGET_GIVEN, "train"))
        for survey in training(run):
            field = next((f for f in survey.fields if f.role == LABEL), None)
            if field is None or field.samples < self.labels:
                continue
            said = survey.labels
            one_class = said is not None and said.kind == "class" and said.classes == 1
            if one_class or (field.low is not None and field.low == field.high):
                value = said.counts[0].what if said is not None and one_class else f"{field.low:.6g}"
                yield self.finding(
                    Severity.ERROR if used else Severity.ADVICE,
                    message=f"every label of {survey.split} is {value}: there is nothing else to learn",
                    fix="print(y.unique(return_counts=True))  # over the whole dataset; then fix the labels",
                    site=place_of(survey),
                    step=0,
                    evidence=samples_read(survey),
                    confidence="likely" if used else "possible",
                )

    def _is_data(self, run: RunView, given: Series, value: float, site: Site) -> bool:
        if not self._seen_all(run):
            return False
        if (given.values == 1.0).all():
            return True
        calls = run.at_site(signals.TARGET_CALLS, site)
        alone = calls is not None and calls.max == 1.0
        return bool(np.isnan(given.values).all()) and alone and value != 0.0

    def _seen_all(self, run: RunView) -> bool:
        seen = sum(float(series.values.sum()) for _, series in run.series(signals.BATCH_SIZE))
        lengths = [loader.length for loader in training_loaders(run) if loader.length]
        return seen >= max(self.labels, *(self.epochs * n for n in lengths), 0)

    def _finding(self, run: RunView, site: Site, low: Series, value: float) -> Finding:
        return self.finding(
            Severity.ERROR,
            message=f"every target of {site.op} is {value:.6g}: there is nothing else to learn",
            fix="print(y.unique(return_counts=True))  # over the whole training set; then fix the labels",
            site=site,
            step=int(low.steps[0]),
            evidence=low.evidence("smallest target of a batch; the largest is the same"),
        )

    def unjudged(self, run: RunView) -> str | None:
        most = run.longest(signals.TARGET_GIVEN, "train")
        return None if was_surveyed(run) else too_few(most, self.samples, "sampled batches")
