"""PERF007 memory-growth

## What it detects
Memory that keeps growing from step to step, and what keeps a reference to it, where that is known: the
classic case is a list of losses, each with its autograd graph.

## Why is this bad?
The run slows down and runs out of memory, often after hours, and the traceback points to the last
allocation instead of the leak.

## How to fix
Keep numbers instead of tensors: `losses.append(loss.item())`, `total += loss.detach()`. Clear what you
keep during an epoch when it ends. In datasets, do not cache every sample in every worker.

## Known problems
`clew run` searches for the owner only once memory has clearly grown; `clew profile` always does. If none
is found, nothing is reported unless memory grows evenly, over more than one epoch and by hundreds of
megabytes: a dataset that fills a cache in its first epoch looks the same until that epoch is over.

## References
- PyTorch docs, frequently asked questions: my model reports out of memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from clew.checks.base import Check
from clew.checks.evidence.speed_gains import size
from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.records import signals
from clew.records.facts.step_facts import GrowthFact
from clew.records.finding import Finding, Severity
from clew.records.site import Site


@dataclass(frozen=True)
class MemoryGrowth(Check):
    id = "PERF007"
    name = "memory-growth"
    needs = (signals.MEMORY_RSS,)

    kept: float = 1e4  # bytes a step of tensors with a known owner: 100 MB in ten thousand steps
    owned: float = 3e7  # bytes by which memory must have grown for anything else with a known owner
    unowned: float = 4e8  # bytes by which memory must have grown without a known owner
    share: float = 0.3  # of the memory at the start, by which it must also have grown
    even: float = 0.9  # share of the variance that a straight line must explain

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        growth = next(reversed(run.known(GrowthFact)), None)
        series = next((s.finite() for _, s in run.series(signals.MEMORY_RSS)), None)
        if growth is None or series is None or len(series) < 2:
            return
        grown = growth.slope * run.steps
        tensors = growth.kind in ("graph", "tensor") and growth.slope >= self.kept
        if (tensors or grown >= self.owned) if growth.owner else self._is_certain(series):
            yield self._finding(series, growth)

    def _is_certain(self, series: Series) -> bool:
        """Whether memory has grown evenly and by much, though nothing is known to keep it."""
        slope, explained = _line(series)
        grown = slope * float(series.steps[-1] - series.steps[0])
        return grown >= max(self.unowned, self.share * float(series.values[0])) and explained >= self.even

    def _finding(self, series: Series, growth: GrowthFact) -> Finding:
        keeps_graphs = growth.kind in ("graph", "tensor") or not growth.owner
        rise = float(series.values[-1] - series.values[0])
        return self.finding(
            Severity.WARNING,
            message=f"memory grows by {size(growth.slope)} per step"
            + (f": {growth.owner}" if growth.owner else ""),
            fix="keep numbers, not tensors with their graphs: append(loss.item()), total += loss.detach()"
            if keeps_graphs
            else "release what is no longer needed: clear it at the end of an epoch, or keep only numbers",
            site=Site(op="memory", file=growth.file, line=growth.line),
            evidence=series.evidence(f"the process uses {size(max(rise, 0.0))} more at the end"),
            confidence="likely" if growth.owner else "possible",
        )


def _line(series: Series) -> tuple[float, float]:
    """Slope per step of the straight line through it, and the share of the variance that it explains."""
    steps, values = series.steps.astype(np.float64), series.values
    if len(values) < 2 or not np.ptp(steps) > 0:
        return 0.0, 0.0
    slope, offset = np.polyfit(steps - steps[0], values, 1)
    spread = float(np.var(values))
    left = float(np.var(values - (slope * (steps - steps[0]) + offset)))
    return float(slope), 1 - left / spread if spread > 0 else 0.0
