"""PERF010 tensor-from-array-list

## What it detects
`torch.tensor` on a list of NumPy arrays, where that takes a noticeable share of the step.

## Why is this bad?
Torch converts such a list number by number. From one array of the same numbers it is a single copy, a
hundred times as fast.

## How to fix
`torch.from_numpy(np.stack(arrays))`, or `torch.stack([torch.from_numpy(a) for a in arrays])`.

## Known problems
Calls in loader workers run in another process and are not seen; nor is `torch.FloatTensor(list)`.

## References
- PyTorch docs, torch.tensor and torch.from_numpy.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from clew.checks.base import Check
from clew.checks.evidence.speed_gains import (
    WorthwhileGain,
    times,
    worthwhile_builds,
)
from clew.checks.run_view import RunView
from clew.records.facts.document_facts import ProfileFact
from clew.records.finding import Evidence, Finding


@dataclass(frozen=True)
class TensorFromArrayList(Check):
    id = "PERF010"
    name = "tensor-from-array-list"
    needs = (ProfileFact,)
    confidence = "certain"

    groups = ("loading-faults",)

    gain: WorthwhileGain = field(default_factory=WorthwhileGain)

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        for built, costs, severity in worthwhile_builds(run, "arrays", self.gain):
            yield self.finding(
                severity,
                message=f"torch.{built.function} converts a list of arrays number by number; "
                f"a step would be {times(built.gain(costs))} as fast from one array",
                fix=f"torch.{built.function}(np.stack(arrays)), where arrays is the list you pass now",
                site=built.site,
                evidence=[
                    built.expected(costs),
                    Evidence(
                        f"{built.elements:,} numbers; the same from one array takes {built.least(costs)}"
                    ),
                ],
            )
