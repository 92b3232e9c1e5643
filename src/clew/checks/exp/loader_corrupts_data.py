"""EXP021 loader-corrupts-data

## What it detects
A loader that returns different data than its dataset. The same indices are read one by one, and as the
loader reads them (with its collate function, without workers), on two copies with the same random
numbers. Reported are fields that lost fractions or high digits in a cast, batches in which every row is
the same sample, rows that mix values of several samples, fields with swapped values, and batches with
fewer rows than samples.

## Why is this bad?
Nothing fails: the shapes are right, and the loss falls a little. But the model never sees the dataset's
data, and the dataset itself looks fine when you inspect it.

## How to fix
Repair the `collate_fn`: `torch.stack` for samples of one shape, the dtype of the data, and `permute`
rather than `view` where axes change places. A dataset that reuses a buffer must return a copy of it.

## Known problems
What a collate function does on purpose (padding, scaling, encoding, sorting by length) is not reported;
so wrong padding is not seen. Data that is damaged in the dataset itself, or later in the training step,
is out of scope. Datasets that can't be copied or read by index are not checked.

## References
- PyTorch docs, torch.utils.data: Working with collate_fn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.run_view import RunView
from clew.records.facts.data_experiment_facts import DeliveredField, LoaderCorruptsDataFact
from clew.records.finding import Evidence, Finding, Severity

_FIXES = {
    "cut off": "keep the dtype of the data in collate_fn: torch.stack(values), with no cast to integers",
    "repeated": "return a copy: the dataset returns one shared buffer, or collate_fn uses one item for "
    "all rows",
    "mixed": "torch.stack the samples, and permute where dimensions are swapped: view and reshape mix "
    "the rows",
    "swapped": "give each field its own values in collate_fn",
    "missing": "return a row for every sample in collate_fn",
}


@dataclass(frozen=True)
class LoaderCorruptsData(Check):
    id = "EXP021"
    name = "loader-corrupts-data"
    rank = 1430
    needs = (LoaderCorruptsDataFact,)
    confidence = "certain"

    share: float = 0.75  # of the batches compared; a single one may contain samples that are alike

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        found = run.outcome(LoaderCorruptsDataFact)
        if found is None:
            return
        for field in found.fields:
            if field.relation not in _FIXES or field.batches < self.share * field.of:
                continue
            yield self.finding(
                Severity.ERROR,
                message=f"{_named(field)} {_words(field)}",
                fix=_FIXES[field.relation],
                site=found.line.site,
                step=0,
                evidence=Evidence(
                    f"{field.batches} of {field.of} batches made by {found.collate} from {found.dataset} are "
                    f"affected; {found.samples} samples were read both ways"
                ),
            )


def _named(field: DeliveredField) -> str:
    return f"field {field.name} of the samples" if field.name.isdigit() else f"{field.name!r}"


def _words(field: DeliveredField) -> str:
    return {
        "cut off": f"loses values in the loader: they are cast to {field.detail or 'a smaller type'}",
        "repeated": "is the same for every sample of a batch, though the dataset's samples differ",
        "mixed": "is mixed up across samples in the loader: rows contain values of several samples",
        "swapped": f"has the values of {field.detail!r} when it comes from the loader",
        "missing": f"is returned for only {field.detail} of the samples of a batch",
    }[field.relation]
