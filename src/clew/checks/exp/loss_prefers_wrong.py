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

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from clew.checks.base import Check
from clew.checks.evidence.experiment_outcome import curve, number, numbers, site_at
from clew.checks.run_view import RunView
from clew.records.facts.network_experiment_facts import LossPrefersWrongFact
from clew.records.finding import Evidence, Finding, Severity


@dataclass(frozen=True)
class LossPrefersWrong(Check):
    id = "EXP043"
    name = "loss-prefers-wrong"
    needs = (LossPrefersWrongFact,)

    groups = ("network-faults",)
    caused_by = ("loss-faults",)

    margin: float = 0.01  # share of the losses' size; rounding and smoothed labels make far less
    mirrored: float = 0.01  # share of the loss at the target that is left at its negative
    bound: float = -20.0  # a loss this far below zero, still falling as fast as the prediction grows

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        data = run.experiment(self.name) or {}
        told = self._values(data) if data.get("task") == "values" else self._answers(data)
        told = told or self._endless(data) or self._gradient(data)
        if told is None:
            return
        message, fix = told
        yield self.finding(
            Severity.ERROR,
            message=message,
            fix=fix,
            site=site_at(data.get("place")),
            step=0,
            evidence=[Evidence(_sentence(data)), *curve(run, self.name)],
        )

    def _answers(self, data: Mapping[str, Any]) -> tuple[str, str] | None:
        right, wrong = number(data.get("right")), number(data.get("wrong"))
        if right - wrong > self.margin * (abs(right) + abs(wrong)):
            return "the loss is lower for wrong answers than for right ones", _FLIP
        return None

    def _values(self, data: Mapping[str, Any]) -> tuple[str, str] | None:
        right, y = number(data.get("right")), numbers(data.get("y"))
        others = [v for x, v in zip(numbers(data.get("x")), y, strict=False) if x != 1.0]
        if others and right > max(others) and right - min(others) > self.margin * abs(right):
            return "the loss is highest where the prediction is right", _FLIP
        if (
            number(data.get("mirrored")) <= self.mirrored * right
            and min(others, default=0.0) > 0
            and right > 0
        ):
            return "the loss is lowest where the prediction is the negative of the target", _SIGN
        return None

    def _endless(self, data: Mapping[str, Any]) -> tuple[str, str] | None:
        """Ten times as far from the target, about ten times as low."""
        far = numbers(data.get("far"))
        if len(far) != 2 or not far[1] < self.bound or not far[1] < 5 * far[0] < 0:
            return None
        return f"the loss falls without bound: {far[1]:.3g} for a prediction far beyond the target", _BOUND

    def _gradient(self, data: Mapping[str, Any]) -> tuple[str, str] | None:
        """Both finite differences agree, and autograd gives the opposite sign."""
        slope, coarse, told = (number(data.get(key)) for key in ("slope", "coarse_slope", "autograd_slope"))
        size = self.margin * max(abs(number(data.get("start"))), 1e-12)
        clear = min(abs(slope), abs(told)) > size and abs(slope - coarse) < 0.2 * abs(slope)
        if clear and slope * told < 0:
            return (
                "the gradient of the loss points the wrong way: following it raises the loss",
                _GRADIENT,
            )
        return None


_FLIP = "flip the sign of the loss: minimise 1 - score, or -log_likelihood"
_SIGN = "(prediction - target), not their sum"
_BOUND = "bound it below: a square or an absolute value of the difference, log_softmax before NLLLoss"
_GRADIENT = "look at what is detached or written by hand between the prediction and the loss"


def _sentence(data: Mapping[str, Any]) -> str:
    right, start = number(data.get("right")), number(data.get("start"))
    if data.get("task") == "values":
        return f"the loss is {start:.4g} at the prediction and {right:.4g} at the target itself"
    return f"the loss is {right:.4g} for right answers and {number(data.get('wrong')):.4g} for wrong ones"
