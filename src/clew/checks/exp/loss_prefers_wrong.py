"""EXP043 loss-prefers-wrong

## What it detects
A loss that is not lowest where the prediction is right. The model's output is replaced by predictions
that move to the target and beyond, and the program's own loss code is evaluated on them: right answers
must have a lower loss than wrong ones, and the target itself the lowest. Also a loss that falls without
bound, and one whose gradient points in the wrong direction.

## Why is this bad?
Training minimises the loss as written. With a missing minus sign it learns the opposite; with a missing
square or absolute value it diverges to infinity while the loss looks better and better.

## How to fix
Write the loss so that it is zero, or lowest, at the target: `1 - overlap`, `-log_probability`,
`(prediction - target) ** 2`. Where torch has the loss, use torch's.

## Known problems
Losses of several models, losses computed inside the model, and samples with signed weights (rewards) are
not checked. Where the program rescales the target before a custom loss, a minimum away from the target
is attributed to that and not reported.

## References
- Karpathy, A recipe for training neural networks, 2019: verify loss.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.experiment_outcome import curve, or_nan
from clew.checks.run_view import RunView
from clew.records.facts.network_experiment_facts import LossPrefersWrongFact
from clew.records.finding import Evidence, Finding, Severity


@dataclass(frozen=True)
class LossPrefersWrong(Check):
    id = "EXP043"
    name = "loss-prefers-wrong"
    rank = 1430
    needs = (LossPrefersWrongFact,)

    groups = ("network-faults",)
    caused_by = ("loss-faults",)

    margin: float = 0.01  # share of the losses' size; rounding and smoothed labels give far less
    mirrored: float = 0.01  # share of the loss at the target that is left at its negative
    bound: float = -20.0  # a loss this far below zero, still falling as fast as the prediction grows
    steeper: float = 5.0  # times as low ten times as far from the target; without a bound it is about ten
    agree: float = 0.2  # share of the slope by which two finite differences may differ; a kink gives more

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        found = run.outcome(LossPrefersWrongFact)
        if found is None:
            return
        result = self._of_values(found) if found.task == "values" else self._of_answers(found)
        result = result or self._endless(found) or self._gradient(found)
        if result is None:
            return
        message, fix = result
        yield self.finding(
            Severity.ERROR,
            message=message,
            fix=fix,
            site=found.place.site,
            step=0,
            evidence=[Evidence(_sentence(found)), *curve(run, self.name)],
        )

    def _of_answers(self, found: LossPrefersWrongFact) -> tuple[str, str] | None:
        right, wrong = found.right, or_nan(found.wrong)
        if right - wrong > self.margin * (abs(right) + abs(wrong)):
            return "the loss is lower for wrong answers than for right ones", _FLIP
        return None

    def _of_values(self, found: LossPrefersWrongFact) -> tuple[str, str] | None:
        right = found.right
        others = [v for x, v in zip(found.x, found.y, strict=False) if x != 1.0]
        if others and right > max(others) and right - min(others) > self.margin * abs(right):
            return "the loss is highest where the prediction is right", _FLIP
        mirrored = or_nan(found.mirrored)
        if mirrored <= self.mirrored * right and min(others, default=0.0) > 0 and right > 0:
            return "the loss is lowest where the prediction is the negative of the target", _SIGN
        return None

    def _endless(self, found: LossPrefersWrongFact) -> tuple[str, str] | None:
        """Ten times as far from the target, about ten times as low."""
        far = found.far
        if len(far) != 2 or not far[1] < self.bound or not far[1] < self.steeper * far[0] < 0:
            return None
        return f"the loss falls without bound: {far[1]:.3g} for a prediction far beyond the target", _BOUND

    def _gradient(self, found: LossPrefersWrongFact) -> tuple[str, str] | None:
        """Both finite differences agree, and autograd gives the opposite sign."""
        slope, coarse, autograd = found.slope, found.coarse_slope, found.autograd_slope
        size = self.margin * max(abs(found.start), 1e-12)
        clear = min(abs(slope), abs(autograd)) > size and abs(slope - coarse) < self.agree * abs(slope)
        if clear and slope * autograd < 0:
            return (
                "the gradient of the loss points the wrong way: following it raises the loss",
                _GRADIENT,
            )
        return None


_FLIP = "flip the sign of the loss: minimise 1 - score, or -log_likelihood"
_SIGN = "(prediction - target), not their sum"
_BOUND = "bound it below: a square or an absolute value of the difference, log_softmax before NLLLoss"
_GRADIENT = "look at what is detached or written by hand between the prediction and the loss"


def _sentence(found: LossPrefersWrongFact) -> str:
    right, start = found.right, found.start
    if found.task == "values":
        return f"the loss is {start:.4g} at the prediction and {right:.4g} at the target itself"
    return f"the loss is {right:.4g} for right answers and {or_nan(found.wrong):.4g} for wrong ones"
