"""PERF008 data-in-python-lists

## What it detects
Data stored as Python lists of numbers, which are converted to tensors again and again: in the dataset,
or in the step itself.

## Why is this bad?
Every number in a list is a separate object of about thirty bytes, and is converted one by one. Workers
copy them page by page as they read them: their memory grows during the first epoch.

## How to fix
Create one array or tensor at the start, `self.rows = torch.tensor(rows)`, and use `self.rows[i]`; for
rows of different lengths, use one long tensor and a tensor of their start positions.

## Known problems
In workers the cost is estimated from a few items that are converted in the training process.

## References
- PyTorch issue 13246: DataLoader copy-on-read of Python objects in workers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from clew.checks.base import Check
from clew.checks.evidence.speed_gains import (
    Costs,
    Loading,
    WorthwhileGain,
    costs_of,
    duration,
    expected,
    loadings,
    times,
    worthwhile_builds,
)
from clew.checks.run_view import RunView
from clew.records.facts.document_facts import ProfileFact
from clew.records.facts.profile_facts import KeptDataFact
from clew.records.finding import Evidence, Finding


@dataclass(frozen=True)
class DataInPythonLists(Check):
    id = "PERF008"
    name = "data-in-python-lists"
    needs = (ProfileFact,)

    groups = ("loading-faults",)

    gain: WorthwhileGain = field(default_factory=WorthwhileGain)

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        found = list(self._built(run))
        yield from found or self._kept(run)

    def _built(self, run: RunView) -> Iterator[Finding]:
        """Measured: calls of `torch.tensor` on lists of numbers."""
        for built, costs, severity in worthwhile_builds(run, "numbers", self.gain):
            yield self.finding(
                severity,
                message=f"torch.{built.function} builds tensors from Python lists in every step; "
                f"with the data kept as tensors, a step would be {times(built.gain(costs))} as fast",
                fix="build one tensor at the start, rows = torch.tensor(rows), and use rows[i]",
                site=built.site,
                evidence=[built.expected(costs), Evidence(f"copied from a tensor: {built.least(costs)}")],
                confidence="certain",
            )

    def _kept(self, run: RunView) -> Iterator[Finding]:
        """Estimated: lists in the dataset of the workers."""
        costs = costs_of(run)
        if costs is None:
            return
        by_loader = {loading.loader.index: loading for loading in loadings(run)}
        for fact in run.known(KeptDataFact):
            loading = by_loader.get(fact.loader or 0)
            if fact.of == "list" and loading is not None and loading.loader.workers:
                yield from self._attribute(costs, loading, fact)

    def _attribute(self, costs: Costs, loading: Loading, kept: KeptDataFact) -> Iterator[Finding]:
        each = (kept.seconds or 0.0) - (kept.needed or 0.0)
        batches = max(loading.seen.batches, 1.0)
        saved = each * loading.seen.samples * batches / loading.loader.workers
        gain = costs.gain(min(saved, costs["data"]))
        severity = self.gain.severity(gain)
        if severity is None:
            return
        name, items = kept.attribute, kept.items
        where = f"{loading.loader.dataset}.{name}"
        yield self.finding(
            severity,
            message=f"{where} keeps {items:,} samples as Python lists; as a tensor, a step would be about "
            f"{times(gain)} as fast",
            fix=f"self.{name} = torch.tensor(self.{name}) in __init__ of {loading.loader.dataset}",
            site=loading.made,
            evidence=[
                expected(gain, f"{duration(each)} for each sample of a batch"),
                Evidence(f"{kept.numbers:,} numbers in each of {items:,} lists"),
            ],
        )
