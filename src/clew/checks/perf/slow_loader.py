"""PERF001 slow-loader

## What it detects
Training that waits for its data: the share of a step in which nothing is computed because the next batch
is not there yet.

## Why is this bad?
Processor or accelerator stand idle. No change to the model makes such a step faster, and a faster machine
waits all the same.

## How to fix
Let workers load while the network computes (`num_workers`), do less for each sample (read smaller files,
decode and resize once and keep the result, transform batches rather than samples), or keep data in memory
as arrays. `clew data` says which stage takes the time.

## Known problems
The gain holds if loading can be hidden entirely; with few cores, loading and computing share them. Data
that does not come from a `DataLoader` is not seen as data. Batches that are there within two milliseconds are
not mentioned: that much is the overhead of a small example.

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
from clew.checks.run_view import RunView
from clew.records.finding import Finding


@dataclass(frozen=True)
class SlowLoader(Check):
    id = "PERF001"
    name = "slow-loader"
    needs = ("fact:profile|fact:data.speed",)

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
            f"hidden behind the computing, a step would be {times(gain)} as fast",
            fix=_fix(loading.loader.workers),
            site=loading.made,
            evidence=expected(gain, f"{of_step(waits, costs)} wait for data"),
        )


def _fix(workers: int) -> str:
    if workers == 0:
        return "load in the background: DataLoader(..., num_workers=2), or do less for each sample"
    return "do less for each sample, or load it faster; clew data shows which stage takes the time"
