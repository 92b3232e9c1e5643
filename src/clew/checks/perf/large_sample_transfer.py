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
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.loader_measurements import large_transfer
from clew.checks.evidence.recorded_facts import Data, rows, shape, text
from clew.checks.evidence.speed_gains import (
    Costs,
    Loading,
    costs_of,
    duration,
    expected,
    loadings,
    number,
    size,
    times,
    worth,
)
from clew.checks.needs import any_of
from clew.checks.run_view import RunView
from clew.records.facts.document_facts import ProfileFact
from clew.records.facts.loader_facts import SizesFact
from clew.records.finding import Evidence, Finding


@dataclass(frozen=True)
class LargeSampleTransfer(Check):
    id = "PERF003"
    name = "large-sample-transfer"
    needs = (any_of(ProfileFact, SizesFact),)

    groups = ("loading-faults",)

    narrower: float = 2.0  # times smaller at least that a batch must become for a change of types to matter

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        costs = costs_of(run)
        for loading in loadings(run) if costs is not None else ():
            if loading.loader.workers and costs is not None:
                yield from self._transfer(costs, loading)
        yield from large_transfer(self, run, self.narrower)

    def _transfer(self, costs: Costs, loading: Loading) -> Iterator[Finding]:
        parts = rows(loading.seen.get("parts"))
        total, narrow = _sum(parts, "bytes"), _sum(parts, "narrow_bytes")
        per_batch = loading.number("move") - loading.number("narrow_move")
        # The worker writes what the parent reads; only what training waits for can be gained.
        saved = min(2 * per_batch * max(loading.number("batches"), 1.0), costs["data"])
        gain = costs.gain(saved)
        severity = worth(gain)
        if severity is None or total < self.narrower * narrow:
            return
        worst = max(parts, key=lambda p: number(p.get("bytes")) - number(p.get("narrow_bytes")))
        samples = max(loading.number("samples"), 1.0)
        each = number(worst.get("bytes")) / samples
        dtype, fits = text(worst.get("dtype")), text(worst.get("fits"))
        yield self.finding(
            severity,
            message=f"workers send {size(each)} per sample as {dtype}, but {fits} would be enough; "
            f"a step would be about {times(gain)} as fast",
            fix=f"return {fits} from the dataset, and convert the batch on arrival: batch.float()",
            site=loading.made,
            evidence=[
                expected(gain, f"a batch would take {size(narrow)} instead of {size(total)}"),
                Evidence(
                    f"moving such a batch takes {duration(loading.number('move'))}, a narrow one "
                    f"{duration(loading.number('narrow_move'))}; "
                    f"{dtype} {shape(worst.get('shape')) or ()} has values that fit in {fits}"
                ),
            ],
        )


def _sum(parts: list[Data], name: str) -> float:
    return sum(number(part.get(name)) for part in parts)
