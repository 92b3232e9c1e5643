"""DATA018 duplicate-samples

## What it detects
Samples that occur in a dataset more than once: bit-identical, or nearly the same (an image saved again,
resized or brightened; a text with a few words changed). `clew data` compares hashes of the samples it
reads, without random augmentation.

## Why is this bad?
Copies count twice in the loss, and a split made after copying puts the same sample on both sides: the
validation score then measures memorisation. In validation data a few samples decide the score.

## How to fix
Drop the copies before you split: `keep = list({hash(x): i for i, x in enumerate(data)}.values())`,
then `Subset(dataset, keep)`. Look for a folder that was merged twice or a download that was repeated.

## Known problems
If not all samples are read, the share is an estimate. Tables with few distinct values, short texts and
blank samples repeat by nature and are not counted; nor are repetitions that the program asks for (the
same dataset twice in a `ConcatDataset`, the same index twice in a `Subset`). Near copies next to each
other, such as windows of a series or frames of a video, are not reported.

## References
- Barz and Denzler, Do we train on test data? Purging CIFAR of near-duplicates, 2020.
- Lee et al., Deduplicating training data makes language models better, 2022.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.survey_facts import by_nature, called, exhibits, place_of, samples_read, surveys
from clew.checks.run_view import RunView
from clew.checks.wording import listed
from clew.records.dataset_survey import DatasetSurvey, Duplicates
from clew.records.facts.document_facts import SurveyFact
from clew.records.finding import Evidence, Finding, Severity

HOW = {"picture": "images", "features": "values", "shingles": "texts"}


@dataclass(frozen=True)
class DuplicateSamples(Check):
    id = "DATA018"
    name = "duplicate-samples"
    rank = 1050
    needs = (SurveyFact,)

    copies: int = 5  # samples that came before; well-kept datasets have one or two
    share: float = 0.01  # of all samples; well-kept datasets have 0.001 and less
    many: float = 0.05  # share of all samples; with more, the loss gives the copies too much weight
    same: float = 0.9  # share of all samples; with more, the input is constant, which is another fault
    windows: float = 0.5  # share of near copies next to each other; with more, they are probably intended
    natural: float = 100.0  # copies over those that chance would make; with fewer, samples repeat by nature

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        found = surveys(run)
        for survey in found:
            where = called(survey, found)
            if self._counts(survey.exact, survey):
                yield self._exact(survey, where)
            elif self._counts(survey.near, survey) and not self._are_windows(survey.near):
                yield self._near(survey, where)

    def _counts(self, copies: Duplicates, survey: DatasetSurvey) -> bool:
        if copies.meant or by_nature(copies, self.natural) or copies.copies < self.copies:
            return False
        return copies.share >= self.share and copies.copies < self.same * max(survey.samples_read - 1, 1)

    def _are_windows(self, copies: Duplicates) -> bool:
        return copies.neighbours >= self.windows * copies.copies

    def _exact(self, survey: DatasetSurvey, where: str) -> Finding:
        copies = survey.exact
        return self.finding(
            Severity.WARNING if copies.share >= self.many else Severity.ADVICE,
            message=f"{copies.copies:,} of {survey.samples_read:,} samples{where} are copies of others"
            + _estimated(survey, copies),
            fix="first = {}; [first.setdefault(x.numpy().tobytes(), i) for i, (x, y) in enumerate(dataset)]; "
            "dataset = Subset(dataset, list(first.values()))  # before you split it",
            site=place_of(survey),
            step=0,
            evidence=[samples_read(survey), Evidence(f"the same values: {_pairs(copies)}")],
            confidence="certain",
            exhibits=exhibits(survey, "exact"),
        )

    def _near(self, survey: DatasetSurvey, where: str) -> Finding:
        copies = survey.near
        return self.finding(
            Severity.ADVICE,
            message=f"{copies.copies:,} of {survey.samples_read:,} samples{where} are nearly the same as "
            "others" + _estimated(survey, copies),
            fix="look at the pairs shown; drop one of each: Subset(dataset, kept)",
            site=place_of(survey),
            step=0,
            evidence=[
                samples_read(survey),
                Evidence(f"{HOW.get(copies.method, 'samples')} that hardly differ: {_pairs(copies)}"),
            ],
            exhibits=exhibits(survey, "near"),
        )

    def unjudged(self, run: RunView) -> str | None:
        return next((s.exact.reason for s in surveys(run) if s.exact.reason), None)


def _estimated(survey: DatasetSurvey, copies: Duplicates) -> str:
    return "" if survey.whole else f", about {copies.share:.0%} of all"


def _pairs(copies: Duplicates) -> str:
    return listed([f"{p.first} and {p.second}" for p in copies.pairs], 4)
