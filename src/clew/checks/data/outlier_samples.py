"""DATA019 outlier-samples

## What it detects
A few samples that differ from all others, with a gap between them and the rest: an image with values
from 0 to 255 among images from 0 to 1, a blank image, an empty text or one a hundred times as long, a
-999 in a column of small numbers, a target with three zeros too many.

## Why is this bad?
A sample a hundred times as large can have a gradient ten thousand times as large, and one such step can
undo an epoch of training. Placeholders for missing values are learned as if they were measurements.

## How to fix
Look at the samples by their index: `dataset[i]`. Fix how they are read, replace placeholders by NaN and
fill them in, or drop the samples.

## Known problems
A long tail is not an outlier: only samples beyond a gap are reported, at most one in a hundred. If not
all samples are read, there may be more.

## References
- Tukey, Exploratory Data Analysis, 1977.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.survey_facts import by_index, called, exhibits, place_of, samples_read, surveys
from clew.checks.run_view import RunView
from clew.records.dataset_survey import DatasetSurvey, Outlier
from clew.records.facts.document_facts import SurveyFact
from clew.records.finding import Evidence, Finding, Severity
from clew.records.plural import counted

MILD = ("blank", "length")  # odd, but training copes with them


@dataclass(frozen=True)
class OutlierSamples(Check):
    id = "DATA019"
    name = "outlier-samples"
    rank = 1050
    needs = (SurveyFact,)

    samples: int = 1  # unlike all others; a single one can spoil the weights

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        found = surveys(run)
        for survey in found:
            kinds: dict[tuple[str, int | None], list[Outlier]] = {}
            for outlier in survey.outliers:
                kinds.setdefault((outlier.why, outlier.feature), []).append(outlier)
            for outliers in sorted(kinds.values(), key=lambda some: (some[0].why in MILD, -len(some))):
                if len(outliers) >= self.samples:
                    yield self._finding(survey, outliers, called(survey, found))

    def _finding(self, survey: DatasetSurvey, outliers: list[Outlier], where: str) -> Finding:
        first = outliers[0]
        indices = sorted({o.index for o in outliers})
        exact = [e for e in exhibits(survey, "outlier") if f", {first.why}" in f"{e.caption},"]
        return self.finding(
            Severity.ADVICE if first.why in MILD else Severity.WARNING,
            message=f"{counted(len(indices), 'sample')}{where} {_words(first, len(indices))}",
            fix=f"look at dataset[{indices[0]}]; then fix how it is read, or drop it",
            site=place_of(survey),
            step=0,
            evidence=[Evidence(f"samples by index: {by_index(indices, 12)}"), samples_read(survey)],
            exhibits=exact,
        )


def _words(outlier: Outlier, many: int) -> str:
    are = "is" if many == 1 else "are"
    value, usual, rest = (f"{n:.4g}" for n in (outlier.value, outlier.usual, outlier.farthest))
    column = "" if outlier.feature is None else f" in column {outlier.feature}"
    if outlier.why == "scale":
        return (
            f"{are} on a different scale: root mean square {value}, the median is {usual}, the most "
            f"extreme of the other samples {rest}"
        )
    if outlier.why == "length":
        return (
            f"{are} of unusual length: {value}, the median is {usual}, the most extreme of the other "
            f"samples {rest}"
        )
    if outlier.why == "blank":
        return f"{are} blank: all values are the same"
    if outlier.why == "empty":
        return f"{are} empty"
    return (
        f"{'contains' if many == 1 else 'contain'} an extreme value{column}: {value}; the median is {usual}, "
        f"the most extreme of the other samples {rest}"
    )
