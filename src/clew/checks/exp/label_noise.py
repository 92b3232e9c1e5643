"""EXP023 label-noise

## What it detects
Samples whose labels look wrong. Simple learners (linear and kernel ridge regression, nearest neighbours)
predict each sample from the other folds. Among the samples they are most confident about, the check
counts those with a different label, and lists them with their label and the predicted one. `clew data`
counts identical samples with different labels.

## Why is this bad?
The network has to memorise each wrong label, which costs capacity and training time; and a validation
set from the same source measures the wrong thing.

## How to fix
Look at the samples shown. Correct or drop them (`Subset(dataset, kept)`); if the same two classes are
often confused, check how the labels were made. Label smoothing helps with the rest.

## Known problems
An estimate from at most 800 samples. Hard samples can look like wrong ones: where the learners are
confident about only a few samples, nothing is reported. Regression, tags and targets per position are
not checked, nor data that simple learners can't predict.

## References
- Northcutt et al., Confident learning: estimating uncertainty in dataset labels, 2021.
- Northcutt et al., Pervasive label errors in test sets destabilize machine learning benchmarks, 2021.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.experiment_outcome import curve, why_not
from clew.checks.evidence.survey_facts import by_nature, exhibits, place_of, samples_read, surveys
from clew.checks.needs import any_of
from clew.checks.run_view import RunView
from clew.checks.wording import listed
from clew.records.facts.data_experiment_facts import LabelNoiseFact
from clew.records.facts.document_facts import SurveyFact
from clew.records.finding import Evidence, Finding, Severity


@dataclass(frozen=True)
class LabelNoise(Check):
    id = "EXP023"
    name = "label-noise"
    rank = 1450
    needs = (any_of(LabelNoiseFact, SurveyFact),)
    confidence = "possible"

    caused_by = ("labels-misaligned", "loader-corrupts-data", "dataset-mutates")

    rate: float = 0.05  # share of wrong labels; well-kept datasets have 1 to 3%
    errors: float = 2.0  # standard errors by which the share found must exceed half of that
    clear: float = 0.65  # share of samples with a clear prediction; where classes overlap it is 0.5 to 0.6
    conflicts: int = 5  # samples that occur twice with different labels; fewer are slips
    contradicted: float = 0.005  # of all samples; large web datasets have 0.0002
    natural: float = 100.0  # copies over those that chance would make; with fewer, samples repeat by nature
    above: float = 0.1  # accuracy of the best learner above that of the most frequent class

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        found = list(self._tried(run))
        yield from found or self._surveyed(run)

    def _surveyed(self, run: RunView) -> Iterator[Finding]:
        """The same sample with two labels: one of them is wrong."""
        for survey in surveys(run):
            copies = survey.exact
            classes = survey.labels is not None and survey.labels.kind == "class"
            if not classes or copies.conflicting < self.conflicts or by_nature(copies, self.natural):
                continue
            if copies.conflicting < self.contradicted * survey.samples_read:
                continue
            parts = [f"{p.first} ({p.first_label}) and {p.second} ({p.second_label})" for p in copies.pairs]
            yield self.finding(
                Severity.WARNING,
                message=f"{copies.conflicting:,} samples of {survey.split} occur twice, with different "
                "labels",
                fix="look at the pairs shown, then correct or drop them: Subset(dataset, kept)",
                site=place_of(survey),
                step=0,
                evidence=[Evidence(f"the same values: {listed(parts, 4)}"), samples_read(survey)],
                confidence="certain",
                exhibits=exhibits(survey, "exact"),
            )

    def _tried(self, run: RunView) -> Iterator[Finding]:
        """What the experiment says."""
        found = run.outcome(LabelNoiseFact)
        if found is None or self._is_weak(found) or not self._is_noisy(found):
            return
        yield self.finding(
            Severity.WARNING,
            message=f"about {_share(found):.0%} of the labels look wrong: {found.suspect_count} of "
            f"{found.samples} samples look like a class other than their label",
            fix="look at the samples shown, then correct or drop them: Subset(dataset, kept)",
            site=found.line.site,
            step=0,
            evidence=[*curve(run, self.name), *_evidence(found)],
        )

    def _is_noisy(self, found: LabelNoiseFact) -> bool:
        share = _share(found)
        if not share >= self.rate:
            return False
        error = math.sqrt(share * (1 - share) / found.judged)
        return share - self.errors * error >= self.rate / 2

    def _is_weak(self, found: LabelNoiseFact) -> bool:
        return not found.accuracy - found.chance >= self.above or not found.clear >= self.clear

    def unjudged(self, run: RunView) -> str | None:
        found = run.outcome(LabelNoiseFact)
        if found is not None and self._is_weak(found):
            return (
                f"a simple learner is right on {found.accuracy:.0%} of the samples and confident about "
                f"{found.clear:.0%}: too little to tell wrong labels from hard samples"
            )
        return why_not(run, self.name)


def _share(found: LabelNoiseFact) -> float:
    return found.wrong / found.judged if found.judged > 0 else math.nan


def _evidence(found: LabelNoiseFact) -> Iterator[Evidence]:
    yield Evidence(
        f"of the {found.judged} samples that the learners are most confident about, {found.wrong} have a "
        "different label"
    )
    parts = [f"{p.samples} labelled {p.given} look like {p.suggested}" for p in found.pairs]
    if parts:
        yield Evidence("; ".join(parts[:3]))
    names = [f"{s.index} ({s.given} → {s.suggested})" for s in found.suspects if s.index is not None]
    if names:
        yield Evidence(f"suspects by index in the dataset: {listed(names, 12)}")
