"""PERF006 python-bound-step

## What it detects
Steps that spend much of their time in Python code, outside torch operations: loops over samples, pixels
or time steps, conversions and bookkeeping in the user's own code.

## Why is this bad?
Python does about ten million simple operations per second, torch a thousand times as many on the same
processor. While Python runs, the network waits, and so does an accelerator.

## How to fix
Replace the loop on the named line with operations on whole tensors: masks instead of `if`, `gather` and
`scatter` instead of indexing one by one, `cumsum` instead of adding up. Code that must stay in Python
belongs in the dataset, where workers run it in the background.

## Known problems
The time is sampled, about once a millisecond, in a few windows of steps. On lines that mix Python and
tensors, the time in torch operations is subtracted, so the result is a lower bound. In a loop that calls
nothing, the time shows at the next line of the function that makes a call.

## References
- PyTorch docs, performance tuning guide.
- Harris et al., Array programming with NumPy, 2020.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from clew.checks.base import Check
from clew.checks.evidence.speed_gains import WorthwhileGain, costs_of, duration, expected, of_step, times
from clew.checks.run_view import RunView
from clew.records.facts.document_facts import ProfileFact
from clew.records.facts.profile_facts import PythonLine, PythonTimeFact
from clew.records.finding import Evidence, Finding
from clew.records.site import Site


@dataclass(frozen=True)
class PythonBoundStep(Check):
    id = "PERF006"
    name = "python-bound-step"
    needs = (ProfileFact,)

    caused_by = ("host-sync-in-step",)

    share: float = 0.2  # of the step in Python; less is not worth a change
    lead: float = 0.3  # of that on the lines named; with less, there is no place to begin
    remains: float = 0.1  # of that time which operations on whole tensors still take
    most: int = 3  # lines that are named
    gain: WorthwhileGain = field(default_factory=WorthwhileGain)

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        costs, facts = costs_of(run), run.known(PythonTimeFact)
        if costs is None or not facts:
            return
        python = facts[-1]
        # Data and logging are judged by other checks, and are no part of either number.
        share = min(python.sampled, python.left, 1.0)
        lines = [line for line in python.lines if line.file][: self.most]
        named = sum(line.share for line in lines)
        if not lines or share < self.share or named < self.lead * share:
            return
        gain = costs.gain((1 - self.remains) * min(share, named) * costs.step)
        severity = self.gain.severity(gain)
        if severity is not None:
            yield self.finding(
                severity,
                message=f"Python code takes {share:.0%} of a step, most of it in "
                f"{lines[0].function or 'this function'}; "
                f"with operations on whole tensors, a step would be about {times(gain)} as fast",
                fix="replace the loop with operations on whole tensors, or move it into the dataset, "
                "where workers run it in the background",
                site=_site(lines[0]),
                evidence=[
                    expected(
                        gain, f"{of_step(share * costs.step, costs)} in Python, outside torch's operations"
                    ),
                    *(_evidence(line, costs.step) for line in lines),
                ],
            )


def _site(line: PythonLine) -> Site:
    return Site(op=line.function, file=line.file, line=line.line)


def _evidence(line: PythonLine, step: float) -> Evidence:
    return Evidence(f"{duration(line.share * step)} per step: {line.code}", site=_site(line))
