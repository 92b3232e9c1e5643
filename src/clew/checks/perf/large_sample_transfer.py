"""PERF003 large-sample-transfer

## What it detects
Samples of many megabytes that workers send to the training process, in a wider dtype than their values
need: integers from 0 to 255 as int64, float64 where the network computes in float32.

## Why is this bad?
Every byte is written by the worker, mapped and read by the parent, and copied to the device. An int64
image is eight times as large as the same image in uint8.

## How to fix
Return the narrow dtype and convert the batch where it is needed: `torch.from_numpy(image)` as uint8, then
`batch.float() / 255` in the training loop, on the device. Crop or resize in the worker, before the transfer.

## Known problems
The range is that of one batch: a rare value outside it would not fit. The cost of the transfer is
measured in one process, without contention between workers.

## References
- PyTorch docs, multiprocessing best practices: sharing tensors between processes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from clew.checks.base import Check
from clew.checks.evidence.loader_measurements import batch_time, field_name, measured_loaders, site_of
from clew.checks.evidence.speed_gains import (
    Costs,
    Loading,
    WorthwhileGain,
    costs_of,
    duration,
    expected,
    gain_of,
    loadings,
    size,
    times,
)
from clew.checks.needs import any_of
from clew.checks.run_view import RunView
from clew.records.facts.document_facts import ProfileFact
from clew.records.facts.loader_facts import SizesFact
from clew.records.finding import Evidence, Finding
from clew.records.loader_speed import MeasuredLoader, Moving, Sizes
from clew.records.plural import counted


@dataclass(frozen=True)
class LargeSampleTransfer(Check):
    id = "PERF003"
    name = "large-sample-transfer"
    needs = (any_of(ProfileFact, SizesFact),)

    groups = ("loading-faults",)

    narrower: float = 2.0  # how many times smaller a batch must become for a change of types to matter
    large: float = 1e6  # bytes of a sample; smaller ones are moved in no time, unless the batch is large
    large_batch: float = 8e6  # bytes of a batch
    gain: WorthwhileGain = field(default_factory=WorthwhileGain)

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        costs = costs_of(run)
        if costs is not None:
            for loading in loadings(run):
                if loading.loader.workers:
                    yield from self._profiled(costs, loading)
        for one in measured_loaders(run):
            if one.sizes is not None and one.sizes.moving is not None and one.sizes.workers:
                yield from self._measured(one, one.sizes, one.sizes.moving)

    def _measured(self, one: MeasuredLoader, sizes: Sizes, moving: Moving) -> Iterator[Finding]:
        """By `clew data`: large samples, in a wider type than they need."""
        narrow = sum(field.fits_bytes if field.fits else field.bytes for field in sizes.fields)
        moved = moving.shared + moving.piped
        if sizes.bytes < self.large and moved < self.large_batch:
            return
        if sizes.bytes < self.narrower * narrow:
            return
        step, wait = batch_time(one), one.speeds.wait if one.speeds is not None else None
        if step is None or wait is None or moving.seconds is None:
            return
        saved = moving.seconds * (1 - narrow / sizes.bytes)
        gain = gain_of(min(saved / step, wait))
        severity = self.gain.severity(gain)
        if severity is None:
            return
        worst = max(sizes.fields, key=lambda field: field.bytes - field.fits_bytes if field.fits else 0.0)
        yield self.finding(
            severity,
            message=f"workers send {size(worst.bytes)} per sample as {worst.dtype} "
            f"({field_name(worst.field)}), but {worst.fits} would be enough; "
            f"a step would be about {times(gain)} as fast",
            fix=f"return {worst.fits} from the dataset, and convert the batch on arrival: batch.float()"
            + (" / 255" if "255" in worst.how else ""),
            site=site_of(one),
            evidence=[
                expected(
                    gain, f"a sample would take {size(worst.fits_bytes)} instead of {size(worst.bytes)}"
                ),
                Evidence(
                    f"moving a batch from worker to parent takes {duration(moving.seconds)}; "
                    f"in {counted(sizes.samples, 'sample')} {field_name(worst.field)} contains {worst.how}"
                ),
            ],
        )

    def _profiled(self, costs: Costs, loading: Loading) -> Iterator[Finding]:
        """By `clew profile`: a batch in a wider type than it needs."""
        seen = loading.seen
        total, narrow = sum(p.bytes for p in seen.parts), sum(p.narrow_bytes for p in seen.parts)
        per_batch = seen.move - seen.narrow_move
        # The worker writes what the parent reads; only what training waits for can be gained.
        saved = min(2 * per_batch * max(seen.batches, 1.0), costs["data"])
        gain = costs.gain(saved)
        severity = self.gain.severity(gain)
        if severity is None or total < self.narrower * narrow:
            return
        worst = max(seen.parts, key=lambda part: part.bytes - part.narrow_bytes)
        each = worst.bytes / max(seen.samples, 1.0)
        dtype, fits = worst.dtype, worst.fits
        yield self.finding(
            severity,
            message=f"workers send {size(each)} per sample as {dtype}, but {fits} would be enough; "
            f"a step would be about {times(gain)} as fast",
            fix=f"return {fits} from the dataset, and convert the batch on arrival: batch.float()",
            site=loading.made,
            evidence=[
                expected(gain, f"a batch would take {size(narrow)} instead of {size(total)}"),
                Evidence(
                    f"moving such a batch takes {duration(seen.move)}, one in {fits} "
                    f"{duration(seen.narrow_move)}; "
                    f"{dtype} {worst.shape} has values that fit in {fits}"
                ),
            ],
        )
