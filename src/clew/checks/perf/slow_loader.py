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
from dataclasses import dataclass, field

from clew.checks.base import Check
from clew.checks.evidence.loader_measurements import batch_time, measured_loaders, rate, site_of
from clew.checks.evidence.speed_gains import (
    WorthwhileGain,
    costs_of,
    duration,
    expected,
    gain_of,
    loadings,
    of_step,
    times,
)
from clew.checks.needs import any_of
from clew.checks.run_view import RunView
from clew.records.facts.document_facts import ProfileFact
from clew.records.facts.loader_facts import SpeedFact
from clew.records.finding import Evidence, Finding, Severity
from clew.records.loader_speed import LOADER, PICKLE, Stages, StageTime, Sweep
from clew.records.site import Site


@dataclass(frozen=True)
class SlowLoader(Check):
    id = "PERF001"
    name = "slow-loader"
    needs = (any_of(ProfileFact, SpeedFact),)

    # Slow because of what is done to each sample, or because of how many workers do it.
    caused_by = ("loader-worker-count", "loading-faults")

    waiting: float = 0.5  # share of the time that training waits, as `clew data` measures it
    slow: float = 5e-3  # seconds of waiting for a batch, as `clew data` measures it; less is overhead
    short: float = 2e-3  # seconds; in a profile, a shorter wait is the overhead of a small example
    gain: WorthwhileGain = field(default_factory=WorthwhileGain)

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        yield from self._measured(run)
        yield from self._profiled(run)

    def _measured(self, run: RunView) -> Iterator[Finding]:
        """By `clew data`: the loader limits the training step by far, and each batch takes a while."""
        for one in measured_loaders(run):
            speeds, step = one.speeds, batch_time(one)
            if speeds is None or step is None or speeds.wait is None or speeds.limited_by != LOADER:
                continue
            if speeds.wait < self.waiting or speeds.wait * step < self.slow:
                continue
            slowest = _slowest(one.stages)
            yield self.finding(
                Severity.WARNING,
                message=f"training waits for data {speeds.wait:.0%} of the time{_because(slowest)}",
                fix=_fix_for_stage(slowest, speeds.workers, one.sweep),
                site=_site(slowest) or site_of(one),
                evidence=[
                    expected(gain_of(speeds.wait), "if no step had to wait"),
                    Evidence(
                        f"samples per second: {rate(speeds.loader)} from the loader alone, "
                        f"{rate(speeds.model)} through the training step alone, {rate(speeds.both)} together"
                    ),
                    *_stage_evidence(one.stages),
                ],
            )

    def _profiled(self, run: RunView) -> Iterator[Finding]:
        """By `clew profile`: the share of a step that waits for data."""
        costs, feeding = costs_of(run), loadings(run)
        if costs is None or not feeding:
            return
        waits = costs["data"]
        gain = costs.gain(waits)
        severity = self.gain.severity(gain)
        if severity is None or waits < self.short:
            return
        loading = max(feeding, key=lambda one: one.seen.seconds)
        yield self.finding(
            severity,
            message=f"training waits for data {waits / costs.step:.0%} of the time; "
            f"with loading in the background, a step would be {times(gain)} as fast",
            fix=_fix(loading.loader.workers),
            site=loading.made,
            evidence=expected(gain, f"{of_step(waits, costs)} waiting for data"),
        )


def _slowest(stages: Stages | None) -> StageTime | None:
    return max(stages.stages, key=lambda s: s.share, default=None) if stages is not None else None


def _because(stage: StageTime | None) -> str:
    return "" if stage is None else f"; {stage.name} takes {stage.share:.0%} of a sample's time"


def _site(stage: StageTime | None) -> Site | None:
    if stage is None or stage.file is None:
        return None
    return Site(op=stage.name, file=stage.file, line=stage.line)


def _stage_evidence(stages: Stages | None) -> list[Evidence]:
    if stages is None or not stages.stages:
        return []
    top = sorted(stages.stages, key=lambda s: -s.share)[:3]
    said = ", ".join(f"{s.name} {duration(s.median)} ({s.share:.0%})" for s in top)
    return [Evidence(f"a sample takes {duration(stages.median)} in one process: {said}")]


def _fix_for_stage(stage: StageTime | None, workers: int, sweep: Sweep | None) -> str:
    less = "do less per sample"
    if stage is not None and stage.kind == PICKLE:
        less = "send less: smaller dtypes, fewer fields, tensors instead of other objects"
    elif stage is not None:
        less = f"make {stage.name} cheaper, or do it once and cache the result"
    if sweep is not None and sweep.gain is not None:
        return less  # loader-worker-count reports what other settings gain
    if workers == 0:
        return (
            "load in the background: DataLoader(..., num_workers=N), with N from clew data --sweep; "
            f"or {less}"
        )
    return f"{less}; clew data --sweep tries more workers"


def _fix(workers: int) -> str:
    if workers == 0:
        return "load in the background: DataLoader(..., num_workers=2), or do less per sample"
    return "do less per sample, or load it faster; clew data shows which stage takes the time"
