"""PERF013 memory-format-unfit

## What it detects
Convolutions on images in channels-first layout, where `channels_last` is faster on this machine:
measured on a snapshot by `clew profile --try`.

## Why is this bad?
The convolution libraries work in channels-last layout. They copy tensors in any other layout before and
after every layer.

## How to fix
`model = model.to(memory_format=torch.channels_last)`, and the same for the images:
`images = images.to(memory_format=torch.channels_last)`. Shapes and results stay the same.

## Known problems
It does not always help, and may hurt with few channels: nothing is reported without a measurement. Code
that calls `.view` on such tensors may have to call `.reshape` instead.

## References
- PyTorch tutorials, channels last memory format in PyTorch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from clew.checks.base import Check
from clew.checks.evidence.speed_gains import WorthwhileGain, only_model, times, tried, why_not_tried
from clew.checks.run_view import RunView
from clew.records.facts.document_facts import ProfileFact
from clew.records.finding import Finding
from clew.records.tried_changes import CHANNELS_LAST


@dataclass(frozen=True)
class MemoryFormatUnfit(Check):
    id = "PERF013"
    name = "memory-format-unfit"
    needs = (ProfileFact,)
    confidence = "certain"

    gain: WorthwhileGain = field(default_factory=WorthwhileGain)

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        for attempt, gain, severity in self.gain.attempts(run, CHANNELS_LAST):
            yield self.finding(
                severity,
                message=f"with images in channels_last format, a step is {times(gain)} as fast",
                fix="model.to(memory_format=torch.channels_last), and the same for the images",
                site=only_model(run),
                evidence=tried(attempt),
            )

    def unjudged(self, run: RunView) -> str | None:
        return why_not_tried(run, CHANNELS_LAST)
