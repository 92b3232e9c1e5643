"""EXP001 cannot-overfit-batch

## What it detects
A network that can't memorise a handful of samples. On a snapshot, it is trained on the same few samples
for a few hundred steps: as the program does it, then without dropout, weight decay and noise, then at
ten times and a tenth of the learning rate, and finally with Adam. It is reported if none of these gets
halfway from the loss of a constant prediction to the lowest possible loss.

## Why is this bad?
Any correctly built network can memorise eight samples. If it can't, the input does not reach the output,
the loss does not reward the target, the gradient does not reach the weights, or the output can't take
the required values. No amount of data fixes that.

## How to fix
If toy-task-failed is reported too, look at the first task that failed: it shows how much the network can
learn at all. Then check what lies between the output and the loss (activation, shape, `detach`), which
parameters the optimizer has, and whether the labels belong to the inputs.

## Known problems
Where the lowest possible loss is not known (a custom loss, a variational bound, a contrastive loss),
only a loss that hardly falls at all is reported. No network can tell identical inputs with different
targets apart. Programs with several optimizers are not checked.

## References
- Karpathy, A recipe for training neural networks, 2019: overfit a single batch.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.experiment_outcome import curve, or_nan
from clew.checks.run_view import RunView
from clew.records.facts.learning_experiment_facts import CannotOverfitBatchFact, OverfitTraining
from clew.records.finding import Evidence, Finding, Severity
from clew.records.plural import counted


@dataclass(frozen=True)
class CannotOverfitBatch(Check):
    id = "EXP001"
    name = "cannot-overfit-batch"
    rank = 1420
    needs = (CannotOverfitBatchFact,)

    # A network that can't learn a toy can't learn a batch either.
    caused_by = ("learning-faults", "input-ignored", "toy-task-failed", "capacity-too-small")

    remaining: float = 0.5  # share of the way from a constant answer to the floor; 0.1 if it learns
    accuracy: float = 0.8  # on those samples, above which the network has learned something
    gain: float = 0.05  # share of the first loss by which a loss of unknown floor must fall
    noise: float = 3.0  # how many times larger a fall must be than the spread of the untrained loss

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        found = run.outcome(CannotOverfitBatchFact)
        if found is None or not found.attempts or any(self._learned(found, a) for a in found.attempts):
            return
        best = min(found.attempts, key=_end)
        if not math.isfinite(found.start):
            return
        yield self.finding(
            Severity.ERROR,
            message=f"the network can't memorise {counted(found.samples, 'sample')}: "
            f"{_course(found.start, best)}",
            fix="check what lies between output and loss: the activation, the shapes, and whether a gradient "
            "reaches the weights",
            site=found.line.site,
            step=0,
            evidence=[
                *curve(run, self.name),
                *(Evidence(f"{a.how}{_quiet(a)}: {_result(a)}") for a in found.attempts),
            ],
        )

    def _learned(self, found: CannotOverfitBatchFact, attempt: OverfitTraining) -> bool:
        left, right = or_nan(attempt.remaining), or_nan(attempt.accuracy)
        if left <= self.remaining or right >= self.accuracy:
            return True
        if not math.isnan(left):
            return False
        fall = found.start - _end(attempt)
        return fall > max(self.gain * abs(found.start), self.noise * found.spread)


def _end(attempt: OverfitTraining) -> float:
    return attempt.end if math.isfinite(attempt.end) else math.inf


def _course(start: float, best: OverfitTraining) -> str:
    text = f"the loss goes from {start:.3g} to {_end(best):.3g} at best"
    floor, constant = or_nan(best.floor), or_nan(best.constant)
    if math.isnan(floor):
        return text
    guess = "" if math.isnan(constant) else f", and a constant prediction gives {constant:.3g}"
    return f"{text}; {floor:.3g} is possible{guess}"


def _quiet(attempt: OverfitTraining) -> str:
    return ", without dropout, decay and noise" if attempt.calm else ", as it is"


def _result(attempt: OverfitTraining) -> str:
    text = f"loss {_end(attempt):.3g} after {attempt.steps} steps"
    right = or_nan(attempt.accuracy)
    return text if math.isnan(right) else f"{text}, {right:.0%} right"
