"""DATA014 dataset-mutates

## What it detects
Arrays in the training dataset that have changed since the last epoch: something, usually a transform,
has modified the stored data in place. `clew check` reads samples several times, from a copy and with the
same random numbers, and compares them and the stored arrays; `clew data` does so with a few samples
before it reads the rest.

## Why is this bad?
The same index returns different data each time it is read. Data that is normalised in place is
normalised again in every epoch and shrinks to zero or diverges; noise that is added in place
accumulates.

## How to fix
Work on a copy: `x = self.data[i].clone()` (or `.copy()` for NumPy), and `x = x / 255` instead of
`x /= 255`, `x.sub(mean)` instead of `x.sub_(mean)`.

## Known problems
Datasets that change on purpose (replay buffers, targets that are refined in every epoch) are reported
too; ignore this check for them. Changes inside worker processes are not seen.

## References
- NumPy docs, Copies and views: basic indexing gives a view.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.data_feed import training_loaders
from clew.checks.evidence.survey_facts import place_of, surveys
from clew.checks.needs import any_of
from clew.checks.run_view import RunView
from clew.records.facts.data_experiment_facts import DatasetMutatesFact
from clew.records.facts.document_facts import SurveyFact
from clew.records.facts.step_facts import DatasetChangedFact, LoaderFact
from clew.records.finding import Evidence, Finding, Severity
from clew.records.site import Site

FIX = "x = self.data[i].clone()  # .copy() for NumPy; then transform the copy"


@dataclass(frozen=True)
class DatasetMutates(Check):
    id = "DATA014"
    name = "dataset-mutates"
    withdrawal = "later samples contradict it"
    needs = (any_of(LoaderFact, DatasetMutatesFact, SurveyFact),)

    groups = ("scale-faults",)

    change: float = 0.01  # of mean or standard deviation, over the larger of the two; rounding gives far less
    times: int = 1  # epochs after which the data had changed

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        tried = run.outcome(DatasetMutatesFact)
        if tried is not None:
            yield from self._read_again(tried)
            return
        seen = list(self._surveyed(run))
        if seen:
            yield from seen
            return
        for loader in training_loaders(run):
            changes = [
                change
                for change in run.known(DatasetChangedFact)
                if change.loader == loader.index and self._is_change(change)
            ]
            if changes and len({change.epoch for change in changes}) >= self.times:
                first = min(change.array for change in changes)
                course = [change for change in changes if change.array == first]
                yield self._finding(loader, course, min(change.step for change in changes))

    def _surveyed(self, run: RunView) -> Iterator[Finding]:
        """In a survey, which reads a few samples several times."""
        for survey in surveys(run):
            change = survey.mutation
            if change is None or not change.arrays:
                continue
            array = f"{survey.dataset}.{change.arrays[0]}"
            text = "mean of a few samples, read again with the same random numbers"
            yield self._changed(array, change.means, change.deviations, text, place_of(survey))

    def _read_again(self, found: DatasetMutatesFact) -> Iterator[Finding]:
        """In the experiment: samples and stored arrays that change when they are read."""
        if not found.fields or not found.arrays:
            return
        array = f"{found.dataset}.{found.arrays[0]}"
        text = f"mean of {found.samples} samples, read {found.reads} times with the same random numbers"
        yield self._changed(array, found.means, found.deviations, text, found.line.site)

    def _changed(
        self, array: str, means: Sequence[float], deviations: Sequence[float], text: str, site: Site
    ) -> Finding:
        """`means` and `deviations` of the same samples, by reading."""
        course = ", then ".join(f"{value:.3g}" for value in deviations[:3])
        return self.finding(
            Severity.ERROR,
            message=f"reading a sample changes it: {array} is changed in place; standard deviation of the "
            f"samples {course}",
            fix=FIX,
            site=site,
            step=0,
            evidence=Evidence(
                text, values=tuple(means), x=tuple(float(n) for n in range(len(means))), x_label="read"
            ),
            confidence="certain",
        )

    def _is_change(self, fact: DatasetChangedFact) -> bool:
        scale = max(abs(fact.mean), fact.std, 1e-12)
        return max(abs(fact.mean_now - fact.mean), abs(fact.std_now - fact.std)) > self.change * scale

    def _finding(self, loader: LoaderFact, course: list[DatasetChangedFact], step: int) -> Finding:
        """`course` are the changes of one array, epoch by epoch."""
        first, last = course[0], course[-1]
        means = [first.mean, *(change.mean_now for change in course)]
        return self.finding(
            Severity.ERROR,
            message=f"the data in {loader.dataset}.{first.array} is changed in place while it is read: "
            f"standard deviation {first.std:.3g}, then {last.std_now:.3g}; mean {means[0]:.3g}, then "
            f"{means[-1]:.3g}",
            fix=FIX,
            site=loader.site,
            step=step,
            evidence=Evidence("mean of the stored data at the start of each epoch", values=tuple(means)),
        )
