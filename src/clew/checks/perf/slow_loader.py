"""PERF001 slow-loader

## What it detects
Training that waits for its data: the share of a step in which nothing is computed because the next batch
is not ready.

## Why is this bad?
The processor or accelerator is idle. No change to the model makes such a step faster, and a faster
device just waits longer.

## How to fix
Let workers load while the network computes (`num_workers`), do less for each sample (read smaller files,
decode and resize once and cache the result, transform batches rather than samples), or keep data in
memory as arrays. `clew data` shows which stage takes the time.

## Known problems
The gain assumes that loading can be hidden entirely; with few cores, loading and computing share them.
Data that does not come from a `DataLoader` is not measured. Waits below two milliseconds per batch are
not reported: that is the overhead of a small example.

## References
- PyTorch docs, performance tuning guide: enable asynchronous data loading and augmentation.
- Mohan et al., Analyzing and mitigating data stalls in DNN training, 2021.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.loader_measurements import slow_loader
from clew.checks.evidence.speed_gains import SHORT, costs_of, expected, loadings, of_step, times, worth
from clew.checks.needs import any_of
from clew.checks.run_view import RunView
from clew.records.facts.document_facts import ProfileFact
from clew.records.facts.loader_facts import SpeedFact
from clew.records.finding import Finding


@dataclass(frozen=True)
class SlowLoader(Check):
    id = "PERF001"
    name = "slow-loader"
    needs = (any_of(ProfileFact, SpeedFact),)

    # Slow for what is done to each sample, or for how many workers do it.
    caused_by = ("loader-worker-count", "loading-faults")

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        yield from slow_loader(self, run)
        costs, feeding = costs_of(run), loadings(run)
        if costs is None or not feeding:
            return
        waits = costs["data"]
        gain = costs.gain(waits)
        severity = worth(gain)
        if severity is None or waits < SHORT:
            return
        loading = max(feeding, key=lambda one: one.number("seconds"))
        yield self.finding(
            severity,
            message=f"training waits for data in {waits / costs.step:.0%} of its time; "
            f"with loading in the background, a step would be {times(gain)} as fast",
            fix=_fix(loading.loader.workers),
            site=loading.made,
            evidence=expected(gain, f"{of_step(waits, costs)} waiting for data"),
        )


def _fix(workers: int) -> str:
    if workers == 0:
        return "load in the background: DataLoader(..., num_workers=2), or do less per sample"
    return "do less per sample, or load it faster; clew data shows which stage takes the time"
