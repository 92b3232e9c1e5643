"""PERF004 host-sync-in-step

## What it detects
Places in the step where Python reads values from a tensor (`.item()`, `print(loss)`, `.cpu()`,
`.tolist()`, `nonzero`) that take a noticeable share of the step: often a loop that reads them one by
one.

## Why is this bad?
Torch is fast because it works on many numbers at once; each such call interrupts that. On an
accelerator, the program also waits until all queued work is done, and then the device waits for the
program.

## How to fix
Keep values in tensors and read them once: add up `loss.detach()` and call `.item()` every hundred steps;
count with `(a == b).sum()` or `torch.bincount` rather than in a loop over samples.

## Known problems
On an accelerator, such a call mostly waits for other work, so not all of its time can be saved. On a CPU
a single `.item()` costs next to nothing and is not reported.

## References
- PyTorch docs, performance tuning guide: avoid unnecessary CPU-GPU synchronization.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from clew.checks.base import Check
from clew.checks.evidence.speed_gains import Costs, WorthwhileGain, costs_of, expected, of_step, times
from clew.checks.run_view import RunView
from clew.records.facts.document_facts import ProfileFact
from clew.records.finding import Finding, Severity
from clew.records.site import Site
from clew.records.step_costs import Sync

ONE_NUMBER = (".item()", "float()", "int()", "bool()", ".cpu()", ".numpy()")


@dataclass(frozen=True)
class HostSyncInStep(Check):
    id = "PERF004"
    name = "host-sync-in-step"
    needs = (ProfileFact,)

    remains: float = 0.1  # share of the time that reading once instead of many times still takes
    at_most: float = 2e-5  # seconds that reading one number can cost on a CPU; more is the machine's noise
    loop: int = 8  # calls in a step; with more, they are in a loop, which takes time itself
    gain: WorthwhileGain = field(default_factory=WorthwhileGain)

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        costs = costs_of(run)
        if costs is None:
            return
        for sync in sorted(costs.profile.syncs, key=lambda s: -s.seconds):
            if sync.file is not None:
                yield from self._sync(costs, sync)

    def _sync(self, costs: Costs, sync: Sync) -> Iterator[Finding]:
        elsewhere = costs.profile.device != "cpu"
        own = sync.seconds
        if not elsewhere and sync.op in ONE_NUMBER:
            own = min(own, self.at_most * sync.calls)
        seconds = min(max(own, self._line_share(costs, sync) * costs.step), costs.step)
        gain = costs.gain(seconds * (1 - self.remains))
        severity = self.gain.severity(gain)
        if severity is None:
            return
        calls = "1 call" if sync.calls == 1 else f"{sync.calls:.3g} calls"
        often = f"{sync.calls:.0f} times a step" if round(sync.calls) > 1 else "in the step"
        yield self.finding(
            Severity.ADVICE if elsewhere else severity,
            message=f"{sync.op} reads values from a tensor {often}; without it, a step would be "
            f"{'up to' if elsewhere else 'about'} {times(gain)} as fast",
            fix="read many values at once: keep them in a tensor, and call .item() or .tolist() on it "
            "every hundred steps",
            site=Site(op=sync.op, file=sync.file, line=sync.line),
            evidence=expected(gain, f"{of_step(seconds, costs)} on this line, {calls}"),
        )

    def _line_share(self, costs: Costs, sync: Sync) -> float:
        """The line's share of a step, where the call is in a loop: the loop itself takes time, too.

        Sampled steps may be slower than others, so this is a share of the outermost line's time.
        """
        if sync.calls < self.loop:
            return 0.0
        lines = [line for line in costs.profile.lines if (line.file, line.line) == (sync.file, sync.line)]
        step = max((line.total for line in costs.profile.lines), default=0.0)
        return max((line.self for line in lines), default=0.0) / step if step > 0 else 0.0
