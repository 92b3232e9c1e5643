"""PERF014 eager-overhead

## What it detects
Steps that are faster when the model is compiled: `clew profile --try` compares eager mode with
`torch.compile` on a snapshot, lists the graph breaks, and compares the results.

## Why is this bad?
Without a compiler, Python calls every operation separately, and each one reads its input from memory and
writes its output back.

## How to fix
`model = torch.compile(model)` before the training loop. Where the graph breaks, the finding names the line:
a `print`, an `.item()`, a branch on a tensor's value.

## Known problems
Compiling takes time; the finding says after how many steps it pays off. Shapes that change from batch to
batch are recompiled. Results differ in the last digits.

## References
- Ansel et al., PyTorch 2: faster machine learning through dynamic Python bytecode transformation and graph
  compilation, 2024.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from clew.checks.base import Check
from clew.checks.evidence.speed_gains import WorthwhileGain, duration, only_model, times, tried, why_not_tried
from clew.checks.run_view import RunView
from clew.records.facts.document_facts import ProfileFact
from clew.records.finding import Evidence, Finding
from clew.records.plural import counted
from clew.records.site import Site
from clew.records.tried_changes import COMPILE, TriedChange


@dataclass(frozen=True)
class EagerOverhead(Check):
    id = "PERF014"
    name = "eager-overhead"
    needs = (ProfileFact,)
    confidence = "certain"

    most_breaks: int = 4  # graph breaks that are named
    gain: WorthwhileGain = field(default_factory=WorthwhileGain)

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        for attempt, gain, severity in self.gain.attempts(run, COMPILE):
            yield self.finding(
                severity,
                message=f"compiled, a step is {times(gain)} as fast{_after(attempt)}",
                fix="model = torch.compile(model), before the training loop",
                site=only_model(run),
                evidence=[tried(attempt), *_agreement(attempt), *self._breaks(attempt)],
            )

    def _breaks(self, attempt: TriedChange) -> Iterator[Evidence]:
        """Where the compiler went back to Python."""
        for one in attempt.breaks[: self.most_breaks]:
            yield Evidence(f"the graph breaks: {one.reason}", site=Site(file=one.file, line=one.line))
        rest = len(attempt.breaks) - self.most_breaks
        if rest > 0:
            yield Evidence(f"and {counted(rest, 'further break')}")

    def unjudged(self, run: RunView) -> str | None:
        return why_not_tried(run, COMPILE)


def _after(attempt: TriedChange) -> str:
    steps = attempt.pays_after
    if steps is None:
        return ""
    return f"; compiling takes {duration(attempt.once)}, which pays off after {steps:,.0f} steps"


def _agreement(attempt: TriedChange) -> Iterator[Evidence]:
    if attempt.difference:
        text = ", ".join(f"{name} {value:.2g}" for name, value in attempt.difference.items())
        yield Evidence(f"relative differences from the eager step: {text}")
