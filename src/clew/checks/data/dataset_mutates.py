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

from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.data_feed import training_loaders
from clew.checks.evidence.experiment_outcome import numbers, place
from clew.checks.evidence.recorded_facts import Data, names, text, whole
from clew.checks.evidence.survey_facts import site, surveys
from clew.checks.needs import any_of
from clew.checks.run_view import RunView
from clew.records.facts.document_facts import SurveyFact
from clew.records.facts.experiment_facts import DatasetMutatesFact
from clew.records.facts.step_facts import LoaderFact
from clew.records.finding import Evidence, Finding, Severity


@dataclass(frozen=True)
class DatasetMutates(Check):
    id = "DATA014"
    name = "dataset-mutates"
    withdrawal = "later samples contradict it"
    needs = (any_of(LoaderFact, DatasetMutatesFact, SurveyFact),)

    groups = ("scale-faults",)

    change: float = 0.01  # of mean or standard deviation, over the larger of the two: rounding is far less
    times: int = 1  # epochs after which it had changed

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        tried = run.experiment(self.name)
        if tried is not None:
            yield from self._read_again(tried)
            return
        seen = list(self._surveyed(run))
        if seen:
            yield from seen
            return
        for loader in training_loaders(run):
            changes = [f for f in run.facts("dataset_changed") if whole(f.data.get("loader")) == loader.index]
            changes = [f for f in changes if self._is_change(f.data)]
            arrays = {text(f.data.get("array")) or "" for f in changes}
            if arrays and len({whole(f.data.get("epoch")) for f in changes}) >= self.times:
                first = min(arrays)
                course = [f.data for f in changes if text(f.data.get("array")) == first]
                yield self._finding(loader, first, course, min(f.step for f in changes))

    def _surveyed(self, run: RunView) -> Iterator[Finding]:
        """What the survey says, of a few samples that were read several times."""
        for survey in surveys(run):
            change = survey.mutation
            if change is None or not change.arrays:
                continue
            course = ", then ".join(f"{value:.3g}" for value in change.deviations[:3])
            yield self.finding(
                Severity.ERROR,
                message=f"reading a sample changes it: {survey.dataset}.{change.arrays[0]} is changed in "
                f"place; standard deviation of the samples {course}",
                fix="x = self.data[i].clone()  # .copy() for NumPy; then transform the copy",
                site=site(survey),
                step=0,
                evidence=Evidence(
                    "mean of a few samples, read again with the same random numbers",
                    values=change.means,
                    x=tuple(float(n) for n in range(len(change.means))),
                    x_label="read",
                ),
                confidence="certain",
            )

    def _read_again(self, data: Data) -> Iterator[Finding]:
        """What the experiment says: samples and stored arrays that change by being read."""
        fields, arrays = names(data.get("fields")), names(data.get("arrays"))
        if not fields or not arrays:
            return
        means, spreads = numbers(data.get("means")), numbers(data.get("deviations"))
        course = ", then ".join(f"{value:.3g}" for value in spreads[:3])
        yield self.finding(
            Severity.ERROR,
            message=f"reading a sample changes it: {data.get('dataset')}.{arrays[0]} is changed in place; "
            f"standard deviation of the samples {course}",
            fix="x = self.data[i].clone()  # .copy() for NumPy; then transform the copy",
            site=place(data),
            step=0,
            evidence=Evidence(
                f"mean of {_number(data, 'samples'):.0f} samples, read {_number(data, 'reads'):.0f} times "
                "with the same random numbers",
                values=tuple(means),
                x=tuple(float(n) for n in range(len(means))),
                x_label="read",
            ),
            confidence="certain",
        )

    def _is_change(self, data: Data) -> bool:
        mean, std, mean_now, std_now = (_number(data, k) for k in ("mean", "std", "mean_now", "std_now"))
        scale = max(abs(mean), std, 1e-12)
        return max(abs(mean_now - mean), abs(std_now - std)) > self.change * scale

    def _finding(self, loader: LoaderFact, array: str, course: list[Data], step: int) -> Finding:
        first = course[0]
        means = [_number(first, "mean"), *(_number(d, "mean_now") for d in course)]
        return self.finding(
            Severity.ERROR,
            message=f"the data in {loader.dataset}.{array} is changed in place while it is read: standard "
            f"deviation {_number(first, 'std'):.3g}, then {_number(course[-1], 'std_now'):.3g}; mean "
            f"{means[0]:.3g}, then {means[-1]:.3g}",
            fix="x = self.data[i].clone()  # .copy() for NumPy; then transform the copy",
            site=loader.site,
            step=step,
            evidence=Evidence(
                "mean of the stored data at the start of each epoch", values=tuple(means), steps=()
            ),
        )


def _number(data: Data, key: str) -> float:
    value = data.get(key)
    return float(value) if isinstance(value, (int, float)) else float("nan")
