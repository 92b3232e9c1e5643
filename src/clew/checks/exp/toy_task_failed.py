"""EXP002 toy-task-failed

## What it detects
A network that can't learn an easy task. The program's own step runs on a snapshot with its targets
replaced by simple ones of the same kind and range: the same answer for every sample; one answer for each
of two samples; whether one feature of the input is large; a linear rule of the input. The first task
that it can't learn, with its own optimizer and with Adam, is reported.

## Why is this bad?
Each task shows what works and what does not. If the network can't learn a constant answer, the output
can't take the value, or the layers that matter are not trained. If that works but it can't tell two
samples apart, the input does not reach the output. If the rules fail, too little of the input does.

## How to fix
Constant: check the last layer (its activation, its bias, its scale) and which parameters the optimizer
has. Two samples: follow one input through the forward pass, and look for pooling over the wrong
dimension, `detach`, or a feature lost. Rules: check what the first layers discard.

## Known problems
A network that ignores what the task asks for by design (the mean of the input, say, after an instance
normalisation) fails the last tasks: these are warnings, and only where it learns next to nothing.
Autoencoders and language models, whose input is their target, are not checked.

## References
- Slav Ivanov, 37 reasons why your neural network is not working, 2017: reduce the problem first.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.experiment_outcome import curve, or_nan
from clew.checks.run_view import RunView
from clew.records.facts.learning_experiment_facts import ToyRung, ToyTaskFailedFact
from clew.records.finding import Evidence, Finding, Severity

FIXES = {
    "constant": "look at the last layer: its activation, bias and scale, and whether it is trained",
    "two samples": "follow the input through forward(): somewhere it is dropped or averaged away",
}


@dataclass(frozen=True)
class ToyTaskFailed(Check):
    id = "EXP002"
    name = "toy-task-failed"
    rank = 1420
    needs = (ToyTaskFailedFact,)

    caused_by = ("learning-faults", "input-ignored")

    failed: float = 0.8  # share of the way to the floor that is left; networks that learn leave less than 0.1
    wrong: float = 0.75  # share of right answers that guessing may reach on so few samples

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        found = run.outcome(ToyTaskFailedFact)
        bad = next((rung for rung in found.rungs if self._failed(rung)), None) if found else None
        if found is None or bad is None:
            return
        yield self.finding(
            Severity.ERROR if bad.name in FIXES else Severity.WARNING,  # it may ignore a rule on purpose
            message=f"the network can't learn to {bad.words}: the loss goes from "
            f"{bad.start:.3g} to {bad.end:.3g} at best{_possible(bad)}",
            fix=FIXES.get(bad.name, "check what the first layers discard"),
            site=found.line.site,
            step=0,
            evidence=[
                *curve(run, self.name),
                *(Evidence(f"{r.words}: {_describe(r)}") for r in found.rungs),
            ],
        )

    def _failed(self, rung: ToyRung) -> bool:
        if not math.isfinite(rung.start):
            return False  # a loss without a value says nothing about learning
        right = or_nan(rung.accuracy)
        return not rung.taken and rung.remaining > self.failed and not right > self.wrong

    def unjudged(self, run: RunView) -> str | None:
        found = run.outcome(ToyTaskFailedFact)
        unclear = [rung for rung in found.rungs if not rung.taken] if found else []
        return f"the network only partly learned to {unclear[0].words}" if unclear else None


def _possible(rung: ToyRung) -> str:
    floor = or_nan(rung.floor)
    return "" if math.isnan(floor) else f"; {floor:.3g} is possible"


def _describe(rung: ToyRung) -> str:
    verdict = "learned" if rung.taken else "not learned"
    right = or_nan(rung.accuracy)
    share = "" if math.isnan(right) else f", {right:.0%} right"
    return f"{verdict}, loss {rung.end:.3g} after {rung.steps} steps{share}"
