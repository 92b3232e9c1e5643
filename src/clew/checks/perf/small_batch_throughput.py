"""PERF005 small-batch-throughput

## What it detects
Batches so small that the time of a step hardly depends on their size: the machine spends its time
launching operations, not running them, and larger batches would give more samples per second.

## Why is this bad?
Each operation costs a few microseconds for the call alone. With small batches that is most of the step,
and the processor or accelerator is mostly idle.

## How to fix
Use larger batches and scale the learning rate with them; `clew profile --batch-sizes 32,64,128,256`
measures the throughput and memory of each, and names the size beyond which little is gained. Where the
batch must stay small, `torch.compile` and fused optimizers reduce the overhead.

## Known problems
More samples per second do not always mean faster learning: there are fewer updates. Without a
measurement by `--batch-sizes` the gain is an estimate, given only where operations are very short.

## References
- Williams, Waterman and Patterson, Roofline: an insightful visual performance model, 2009.
- McCandlish et al., An empirical model of large-batch training, 2018.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from clew.checks.base import Check
from clew.checks.evidence.speed_gains import (
    Costs,
    costs_of,
    expected,
    loadings,
    only_model,
    times,
)
from clew.checks.run_view import RunView
from clew.records import signals
from clew.records.facts.document_facts import BatchSizesFact, ProfileFact
from clew.records.finding import Evidence, Finding, Severity
from clew.records.site import Site
from clew.records.tried_changes import BatchSizes


@dataclass(frozen=True)
class BatchGain:
    """The least gain for which a larger batch is advised."""

    measured: float = 1.05  # times as many samples per second, as measured; less is lost in the noise
    estimated: float = 1.3  # the same, as estimated


@dataclass(frozen=True)
class SmallBatchThroughput(Check):
    id = "PERF005"
    name = "small-batch-throughput"
    needs = (ProfileFact,)

    short: float = 30e-6  # seconds: operations that take this with their backward are mostly overhead
    reached: float = 0.25  # share of the machine's roof; above, it is busy with arithmetic
    computing: float = 0.4  # share of the step in forward and backward; below, something else comes first
    factor: int = 4  # how many times larger a batch the estimate is made for
    largest: int = 256  # samples; a larger batch is a question of learning rather than of speed
    left: int = 20  # batches that an epoch must still have
    reachable: float = 0.5  # share of the roof that real operations reach with a large batch
    gain: BatchGain = field(default_factory=BatchGain)

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        costs = costs_of(run)
        if costs is None:
            return
        sweeps = [fact.content for fact in run.known(BatchSizesFact)]
        measured = [sweep for sweep in sweeps if sweep is not None and sweep.gain is not None]
        if measured:
            yield from self._measured(run, measured[-1])
        else:
            yield from self._estimated(run, costs)

    def _measured(self, run: RunView, sweep: BatchSizes) -> Iterator[Finding]:
        gain = 1 + (sweep.gain or 0.0)
        if sweep.knee is None or sweep.knee <= sweep.current or not gain >= self.gain.measured:
            return
        rows = [row for row in sweep.rows if row.measured]
        yield self.finding(
            Severity.ADVICE,
            message=f"batches of {sweep.current} underuse the machine: with {sweep.knee}, "
            f"{times(gain)} as many samples per second",
            fix=f"DataLoader(..., batch_size={sweep.knee}), and scale the learning rate with it",
            site=self._site(run),
            evidence=[
                expected(gain, sweep.why or "larger sizes gain little", measured=True),
                Evidence(
                    "samples per second by batch size",
                    values=tuple(row.throughput for row in rows),
                    x=tuple(float(row.size) for row in rows),
                    x_label="batch size",
                ),
            ],
            confidence="certain",
        )

    def _estimated(self, run: RunView, costs: Costs) -> Iterator[Finding]:
        profile = costs.profile
        computing = costs.median("forward") + costs.median("backward")
        calls = sum(op.calls for op in profile.ops)
        # Detailed steps are slower, on a loaded machine by any factor: no more than the median step has.
        busy = min(sum(op.forward + op.backward for op in profile.ops), computing)
        batch = _batch_size(run)
        roofed = sum((op.roof or 0.0) * (op.forward + op.backward) for op in profile.ops)
        if not calls or not busy > 0 or not 0 < batch <= self.largest or not self._enough_data(run, batch):
            return
        if computing < self.computing * costs.step or busy / calls > self.short:
            return
        if roofed > self.reached * busy or profile.roof is None:
            return
        work = computing * max(roofed / busy, 0.0) / self.reachable
        step = costs.step + (self.factor - 1) * work
        gain = self.factor * costs.step / step
        if gain >= self.gain.estimated:
            yield self.finding(
                Severity.ADVICE,
                message=f"batches of {batch} leave the machine idle: operations take "
                f"{busy / calls * 1e6:.3g} µs each, mostly for the call itself",
                fix=f"try DataLoader(..., batch_size={batch * self.factor}), and scale the learning rate "
                "with it; clew profile --batch-sizes measures what is best",
                site=self._site(run),
                evidence=[
                    expected(gain, f"with {self.factor} times the batch, in samples per second"),
                    Evidence(
                        f"{calls:.0f} operations per step reach {roofed / busy:.1%} of what this "
                        "machine can do"
                    ),
                ],
                confidence="possible",
            )

    def _enough_data(self, run: RunView, batch: int) -> bool:
        lengths = [one.loader.length for one in loadings(run) if one.loader.length]
        return not lengths or min(lengths) >= self.left * self.factor * batch

    def _site(self, run: RunView) -> Site:
        found = loadings(run)
        return found[0].made if found else only_model(run)


def _batch_size(run: RunView) -> int:
    sizes = [series.median for _, series in run.series(signals.BATCH_SIZE)]
    return int(sizes[0]) if sizes and sizes[0] == sizes[0] else 0
