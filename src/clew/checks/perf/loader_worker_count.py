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
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.loader_measurements import worker_count
from clew.checks.evidence.speed_gains import (
    SHORT,
    Costs,
    Loading,
    costs_of,
    duration,
    expected,
    loadings,
    of_step,
    times,
    worth,
)
from clew.checks.needs import any_of
from clew.checks.run_view import RunView
from clew.checks.wording import counted
from clew.records.facts.document_facts import ProfileFact
from clew.records.facts.loader_facts import SweepFact
from clew.records.finding import Evidence, Finding


@dataclass(frozen=True)
class LoaderWorkerCount(Check):
    id = "PERF002"
    name = "loader-worker-count"
    needs = (any_of(ProfileFact, SweepFact),)

    caused_by = ("loading-faults",)

    near: float = 0.05  # of the best step time: the fewest workers that come this near are enough
    waiting: float = 0.1  # share of the step that waits, from which on workers must be busy all the time
    idle: float = 0.5  # share of processor time below which loading waits for disk or network
    most: int = 16  # workers that are ever suggested

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        yield from worker_count(self, run)
        costs, feeding = costs_of(run), loadings(run)
        if costs is None or len(feeding) != 1:
            return  # whose wait it is can't be told
        loading = feeding[0]
        yield from self._too_few(costs, loading)
        yield from self._started_anew(run, loading)

    def _too_few(self, costs: Costs, loading: Loading) -> Iterator[Finding]:
        workers, waits = loading.loader.workers, costs["data"]
        if waits < max(self.waiting * costs.step, SHORT):
            return  # handing over a batch costs about a millisecond, too
        load = waits if workers == 0 else costs.step * workers
        cpu = self._cpu(loading, load)
        candidates = range(max(workers, 1), self._limit(costs, load, cpu) + 1)
        steps = {n: _step_with(n, costs, load, cpu) for n in candidates}
        if not steps:
            return
        best = min(steps.values())
        enough = next(n for n, step in steps.items() if step <= (1 + self.near) * best)
        gain = costs.step / max(steps[enough], 0.05 * costs.step)
        severity = worth(gain)
        if severity is None or enough <= workers:
            return
        now = (
            "no worker loads in the background"
            if workers == 0
            else "1 worker loads"
            if workers == 1
            else f"{workers} workers load"
        )
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
        """Processor seconds of loading a batch: seen without workers, else assumed to be all of it."""
        seconds = loading.number("seconds")
        known = loading.loader.workers == 0 and seconds > 0
        return load * min(loading.number("cpu") / seconds, 1.0) if known else load

    def _limit(self, costs: Costs, load: float, cpu: float) -> int:
        """More workers than cores help only if they wait for something else than a processor."""
        cores = max(costs.profile.cores, 1)
        return min(self.most, 4 * cores if cpu < self.idle * load else cores)

    def _started_anew(self, run: RunView, loading: Loading) -> Iterator[Finding]:
        starts, seconds = int(loading.number("starts")), loading.number("starting")
        total = max((s.max for _, s in run.series("wall")), default=0.0)
        if starts < 2 or loading.persistent or not loading.loader.workers or not total > 0:
            return
        gain = total / max(total - (starts - 1) * seconds, 0.05 * total)
        severity = worth(gain)
        if severity is not None:
            workers = loading.loader.workers
            yield self.finding(
                severity,
                message=f"{counted(workers, 'worker')} are restarted for every epoch: "
                f"{duration(seconds)} each time, {starts} times",
                fix=f"DataLoader(..., num_workers={workers}, persistent_workers=True)",
                site=loading.made,
                evidence=expected(
                    gain, f"{duration(starts * seconds)} of {duration(total)} spent on starting workers"
                ),
            )


def _step_with(workers: int, costs: Costs, load: float, cpu: float) -> float:
    """Seconds of a step with so many workers: the slowest of network, workers, and all cores together."""
    compute = costs.step - costs["data"]
    threads, cores = max(costs.profile.threads, 1), max(costs.profile.cores, 1)
    busy = compute * min(threads, cores) + cpu
    return max(compute, load / workers, busy / cores)
