"""LOSS002 silent-broadcast

## What it detects
A prediction and a target of different shapes, such as (N, 1) and (N,), that broadcast to a larger shape,
such as (N, N), inside a loss.

## Why is this bad?
Every prediction is compared with every target. The loss is then smallest when all predictions
equal the mean of the targets: the model learns a constant, and nothing fails.

## How to fix
Give both the same shape: `prediction.squeeze(1)`, or `target.unsqueeze(1)`.

## Known problems
Deliberate pairwise comparisons are not reported if the two sides differ in length or have the same
number of dimensions in a hand-written loss.

## References
- NumPy docs, Broadcasting: general rules.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.needs import any_of
from clew.checks.run_view import RunView
from clew.checks.wording import shaped
from clew.records import signals
from clew.records.facts.loss_facts import BroadcastFact, LossFact, Shape
from clew.records.finding import Evidence, Finding, Severity
from clew.records.site import Line, Site

HAND_WRITTEN = {"sub", "rsub", "add", "mul", "div", "pow"}


@dataclass(frozen=True)
class SilentBroadcast(Check):
    id = "LOSS002"
    name = "silent-broadcast"
    rank = 560
    needs = (any_of(signals.LOSS, LossFact, BroadcastFact),)
    confidence = "certain"

    groups = ("loss-faults",)
    from_the_start = True

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        seen: set[Line] = set()
        for case in run.known(BroadcastFact):
            if (case.file, case.line) not in seen and _mistaken(case):
                seen.add((case.file, case.line))
                yield self._finding(case)

    def _finding(self, case: BroadcastFact) -> Finding:
        prediction, result = shaped(case.prediction or ()), shaped(case.result or ())
        target = shaped(case.target) if case.target is not None else "a different shape"
        return self.finding(
            Severity.ERROR,
            message=f"{case.kind} broadcasts a prediction of shape {prediction} against a target of "
            f"{target} to {result}: every sample is compared with every other",
            fix=_fix(case.prediction or (), case.target),
            site=Site(op=case.kind, file=case.file, line=case.line, phase="train"),
            step=case.step,
            evidence=Evidence(f"prediction {prediction}, target {target}, result {result}"),
        )


def _mistaken(case: BroadcastFact) -> bool:
    """Both sides grew although they hold the same samples."""
    prediction, target, result = case.prediction, case.target, case.result
    if not prediction or not result:
        return False
    if target is None:
        return len(result) == 2 and result[0] == result[1] == math.prod(prediction)
    larger = math.prod(result) > max(math.prod(prediction), math.prod(target))
    same_samples = bool(target) and prediction[0] == target[0]
    return larger and same_samples and (case.kind not in HAND_WRITTEN or len(prediction) != len(target))


def _fix(prediction: Shape, target: Shape | None) -> str:
    if len(prediction) == 2 and prediction[1] == 1:
        return "prediction.squeeze(1)  # same shape as the target; or target.unsqueeze(1)"
    if target is not None and len(target) == 2 and target[1] == 1:
        return "target.squeeze(1)  # same shape as the prediction; or prediction.unsqueeze(1)"
    if len(prediction) == 1:
        return "prediction.unsqueeze(1)  # same shape as the target"
    return "target = target.view_as(prediction)"
