"""DATA020 corrupt-samples

## What it detects
Samples that can't be read: the dataset raises an exception for their index, or returns None. `clew data`
skips them, counts them and lists them by index, with the error and the line.

## Why is this bad?
The loader raises an exception when it reaches one of them, in the first epoch or after hours. In a
worker process the traceback says little about which sample it was.

## How to fix
Repair or delete the files behind the indices shown, or leave them out: `Subset(dataset, good)`. If the
last indices are out of range, `__len__` returns too many.

## Known problems
Samples that fail only sometimes (a network, a locked file) are counted if they failed once. A dataset
that returns None on purpose, for a collate function that drops such samples, only gets a hint.

## References
- PyTorch docs, torch.utils.data: multi-process data loading.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.survey_facts import by_index, called, place_of, samples_read, surveys
from clew.checks.run_view import RunView
from clew.records.dataset_survey import DatasetSurvey
from clew.records.facts.document_facts import SurveyFact
from clew.records.finding import Evidence, Finding, Severity
from clew.records.plural import counted
from clew.records.site import Site


@dataclass(frozen=True)
class CorruptSamples(Check):
    id = "DATA020"
    name = "corrupt-samples"
    needs = (SurveyFact,)
    confidence = "certain"

    samples: int = 1  # one is enough to end a training

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        found = surveys(run)
        for survey in found:
            if survey.corrupt_count >= self.samples:
                yield self._finding(survey, called(survey, found))

    def _finding(self, survey: DatasetSurvey, where: str) -> Finding:
        skipped = survey.corrupt_count == survey.nothing and not survey.stacked
        first = survey.corrupt[0] if survey.corrupt else None
        place = place_of(survey)
        if first is not None and first.file:
            place = Site(file=first.file, line=first.line)
        return self.finding(
            Severity.ADVICE if skipped else Severity.ERROR,
            message=_words(survey, where),
            fix=_fix(survey),
            site=place,
            step=0,
            evidence=[Evidence(f"sample {c.index}: {c.error}") for c in survey.corrupt[:3]]
            + [
                Evidence(f"by index: {by_index((c.index for c in survey.corrupt), 12)}"),
                samples_read(survey),
            ],
        )


def _words(survey: DatasetSurvey, where: str) -> str:
    if survey.past_end is not None and survey.total is not None:
        return (
            f"len(dataset) is {survey.total:,}, but there are no samples from index {survey.past_end:,} on"
            f"{where}"
        )
    all_read = survey.looked + survey.corrupt_count
    if survey.corrupt_count == survey.nothing:
        return f"the dataset returns None for {survey.nothing:,} of {all_read:,} samples{where}"
    errors = {c.error.partition(":")[0] for c in survey.corrupt}
    named = f" ({min(errors)})" if len(errors) == 1 else ""
    return f"{counted(survey.corrupt_count, 'sample')} of {all_read:,}{where} can't be read{named}"


def _fix(survey: DatasetSurvey) -> str:
    if survey.past_end is not None:
        return "make __len__ return the number of samples that __getitem__ can return"
    bad = sorted(c.index for c in survey.corrupt)
    return f"bad = {set(bad[:8]) or '{…}'}; Subset(dataset, [i for i in range(len(dataset)) if i not in bad])"
