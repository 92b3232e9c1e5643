"""EXP021 loader-corrupts-data

## What it detects
A loader that delivers other data than its dataset returns. The same indices are read one by one, and as
the loader reads them (its own collate function, no workers), on two copies under the same random numbers.
Reported are fields whose fractions or high digits were lost in a cast, batches in which every row is the
same sample, rows that hold values of several samples, fields that hold each other's values, and batches
with fewer rows than samples.

## Why is this bad?
Nothing fails: the shapes are right, the loss falls a little. But the model never sees the data that the
dataset holds, so every look at the dataset itself says that all is well.

## How to fix
Repair the `collate_fn`: `torch.stack` for samples of one shape, the dtype of the data, and `permute`
rather than `view` where axes change places. A dataset that reuses a buffer must return a copy of it.

## Known problems
What a collate function makes on purpose (padding, scaling, encoding, sorting by length) is left alone;
so a wrong padding is not seen. Data that is damaged in the dataset itself, or later in the training step,
is beyond this experiment. Datasets that can't be copied or read by index are not judged.

## References
- PyTorch docs, torch.utils.data: Working with collate_fn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from clew.checks.base import Check
from clew.checks.evidence.experiment_outcome import number, place, why_not
from clew.checks.evidence.recorded_facts import rows, text
from clew.checks.run_view import RunView
from clew.records.finding import Evidence, Finding, Severity

_FIXES = {
    "cut off": "keep the type of the data in collate_fn: torch.stack(values), with no cast to whole numbers",
    "repeated": "return a copy: the dataset gives out one buffer, or collate_fn takes one item for all",
    "mixed": "torch.stack the samples, and permute where axes change places: view and reshape mix the rows",
    "swapped": "give each field its own values in collate_fn",
    "missing": "return a row for every sample in collate_fn",
}


@dataclass(frozen=True)
class LoaderCorruptsData(Check):
    id = "EXP021"
    name = "loader-corrupts-data"
    needs = ("fact:experiment.loader-corrupts-data",)
    confidence = "certain"

    share: float = 0.75  # of the batches compared: a single one may hold samples that are alike

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        data = run.experiment(self.name)
        for field in rows(data.get("fields")) if data else []:
            relation = text(field.get("relation")) or ""
            if data is None or relation not in _FIXES:
                continue
            if number(field.get("batches")) < self.share * number(field.get("of")):
                continue
            yield self.finding(
                Severity.ERROR,
                message=f"{_named(field)} {_words(field)}",
                fix=_FIXES[relation],
                site=place(data),
                step=0,
                evidence=Evidence(
                    f"{number(field.get('batches')):.0f} of {number(field.get('of')):.0f} batches made by "
                    f"{data.get('collate')} from {data.get('dataset')} are so; "
                    f"{number(data.get('samples')):.0f} samples were read both ways"
                ),
            )

    def unjudged(self, run: RunView) -> str | None:
        return why_not(run, self.name)


def _named(field: Mapping[str, Any]) -> str:
    name = str(field.get("name"))
    return f"field {name} of the samples" if name.isdigit() else f"{name!r}"


def _words(field: Mapping[str, Any]) -> str:
    detail = text(field.get("detail")) or ""
    return {
        "cut off": f"loses its values in the loader: they are cast to {detail or 'a smaller type'}",
        "repeated": "is the same for every sample of a batch, though the dataset's samples differ",
        "mixed": "is mixed up across samples in the loader: rows hold values of several of them",
        "swapped": f"holds the values of {detail!r} when it comes from the loader",
        "missing": f"is delivered for only {detail} of the samples of a batch",
    }[str(field.get("relation"))]
