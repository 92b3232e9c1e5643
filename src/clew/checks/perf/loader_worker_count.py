"""PERF002 loader-worker-count

## What it detects
A `DataLoader` with too few workers for the time that a batch takes, or none at all, while training waits
for data; and workers that are restarted for every epoch, at a noticeable cost.

## Why is this bad?
With `num_workers=0` training waits while a batch is loaded. With too few workers, it waits for most
batches. Workers that are restarted for every epoch cost their start-up time every time.

## How to fix
`DataLoader(..., num_workers=N, persistent_workers=True)` with the number from the finding, which is the
smallest that should give the full speed. `clew data --sweep` measures the best one.

## Known problems
The estimate assumes that a batch takes a worker as long as it took the training process, and that cores
used by the network are not available for loading. Workers need their own memory and start-up time.

## References
- PyTorch docs, torch.utils.data: single- and multi-process data loading.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from clew.checks.base import Check
from clew.checks.evidence.loader_measurements import measured_loaders, rate, site_of
from clew.checks.evidence.speed_gains import (
    Costs,
    Loading,
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
from clew.records import signals
from clew.records.facts.document_facts import ProfileFact
from clew.records.facts.loader_facts import SweepFact
from clew.records.finding import Evidence, Finding
from clew.records.plural import counted


@dataclass(frozen=True)
class LoaderWorkerCount(Check):
    id = "PERF002"
    name = "loader-worker-count"
    needs = (any_of(ProfileFact, SweepFact),)

    caused_by = ("loading-faults",)

    near: float = 0.05  # share of the best step time; the fewest workers that come this near are enough
    waiting: float = 0.1  # share of the step spent waiting; with more, workers must be busy all the time
    idle: float = 0.5  # share of processor time below which loading waits for disk or network
    most: int = 16  # workers that are ever suggested
    per_core: int = 4  # workers for each core, at most, where loading waits for disk or network
    short: float = 2e-3  # seconds; a shorter wait for a batch is the overhead of a small example
    gain: WorthwhileGain = field(default_factory=WorthwhileGain)

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        yield from self._swept(run)
        costs, feeding = costs_of(run), loadings(run)
        if costs is not None and len(feeding) == 1:  # with several, it is not known which one is waited for
            yield from self._too_few(costs, feeding[0])
            yield from self._restarted(run, feeding[0])

    def _swept(self, run: RunView) -> Iterator[Finding]:
        """By `clew data --sweep`: a setting with which the training step itself is faster."""
        for one in measured_loaders(run):
            sweep = one.sweep
            if sweep is None or sweep.gain is None or sweep.best is None or sweep.now is None:
                continue
            best, now = sweep.best, sweep.now
            gain = gain_of(sweep.gain)
            severity = self.gain.severity(gain)
            if severity is None or best == now:
                continue
            ahead = f", prefetch_factor={best.prefetch}" if best.prefetch not in (0, 2) else ""
            kept = ", persistent_workers=True" if best.workers else ""
            verb = "makes" if best.workers == 1 else "make"
            yield self.finding(
                severity,
                message=f"{counted(best.workers, 'worker')} instead of {now.workers} {verb} a training step "
                f"{times(gain)} as fast",
                fix=f"DataLoader(..., num_workers={best.workers}{ahead}{kept})",
                site=site_of(one),
                evidence=[
                    expected(
                        gain,
                        f"{rate(now.rate)} samples per second now, {rate(best.rate)} with that",
                        measured=True,
                    ),
                    Evidence(
                        "samples per second by number of workers: "
                        + ", ".join(f"{r.workers}: {rate(r.rate)}" for r in sweep.rows if r.rate is not None)
                    ),
                ],
            )

    def _too_few(self, costs: Costs, loading: Loading) -> Iterator[Finding]:
        workers, waits = loading.loader.workers, costs["data"]
        if waits < max(self.waiting * costs.step, self.short):
            return  # passing on a batch takes about a millisecond anyway
        load = waits if workers == 0 else costs.step * workers
        cpu = self._cpu(loading, load)
        candidates = range(max(workers, 1), self._limit(costs, load, cpu) + 1)
        steps = {n: _step_with(n, costs, load, cpu) for n in candidates}
        if not steps:
            return
        best = min(steps.values())
        enough = next(n for n, step in steps.items() if step <= (1 + self.near) * best)
        gain = costs.gain(costs.step - steps[enough])
        severity = self.gain.severity(gain)
        if severity is None or enough <= workers:
            return
        now = "no worker loads in the background"
        if workers:
            now = f"{counted(workers, 'worker')} {'loads' if workers == 1 else 'load'}"
        yield self.finding(
            severity,
            message=f"{now} while training waits for data: "
            f"{enough} would make a step about {times(gain)} as fast",
            fix=f"DataLoader(..., num_workers={enough}, persistent_workers=True)",
            site=loading.made,
            evidence=[
                expected(gain, f"{of_step(waits, costs)} waiting for data"),
                Evidence(
                    f"a batch takes about {duration(load)} to load and {duration(costs.step - waits)} to "
                    f"train on; {counted(costs.profile.cores, 'core')}"
                ),
            ],
        )

    def _cpu(self, loading: Loading, load: float) -> float:
        """Processor seconds of loading a batch: measured without workers, else assumed to be all of it."""
        seen = loading.seen
        known = loading.loader.workers == 0 and seen.seconds > 0
        return load * min(seen.cpu / seen.seconds, 1.0) if known else load

    def _limit(self, costs: Costs, load: float, cpu: float) -> int:
        """The most workers to try: more than cores only if loading waits for a disk or network."""
        cores = max(costs.profile.cores, 1)
        return min(self.most, self.per_core * cores if cpu < self.idle * load else cores)

    def _restarted(self, run: RunView, loading: Loading) -> Iterator[Finding]:
        starts, seconds = loading.seen.starts, loading.seen.starting
        total = max((s.max for _, s in run.series(signals.WALL)), default=0.0)
        if starts < 2 or loading.loader.persistent_workers or not loading.loader.workers or not total > 0:
            return
        gain = gain_of((starts - 1) * seconds / total)
        severity = self.gain.severity(gain)
        if severity is not None:
            workers = loading.loader.workers
            verb = "is" if workers == 1 else "are"
            yield self.finding(
                severity,
                message=f"{counted(workers, 'worker')} {verb} restarted for every epoch: "
                f"{duration(seconds)} each time, {starts} times",
                fix=f"DataLoader(..., num_workers={workers}, persistent_workers=True)",
                site=loading.made,
                evidence=expected(
                    gain, f"{duration(starts * seconds)} of {duration(total)} spent on starting workers"
                ),
            )


def _step_with(workers: int, costs: Costs, load: float, cpu: float) -> float:
    """Seconds of a step with this many workers: the slowest of network, workers, and all cores together."""
    compute = costs.step - costs["data"]
    threads, cores = max(costs.profile.threads, 1), max(costs.profile.cores, 1)
    busy = compute * min(threads, cores) + cpu
    return max(compute, load / workers, busy / cores)
