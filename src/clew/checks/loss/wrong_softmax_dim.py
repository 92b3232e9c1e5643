"""LOSS006 wrong-softmax-dim

## What it detects
A softmax (or log_softmax) before the loss over a dimension other than the classes, such as `dim=0`, the
batch.

## Why is this bad?
The samples of a batch then compete with each other for each class, instead of the classes for each
sample. Predictions depend on the other samples of the batch, and the loss can't fall.

## How to fix
`dim=1` for scores of shape (N, C) or (N, C, …); `dim=-1` where classes come last. Without a `dim`, torch
uses 0 for tensors with three dimensions.

## Known problems
Only the softmax whose output goes into the loss is checked, not those inside the model (attention).

## References
- PyTorch docs, torch.nn.functional.softmax: `dim`, a dimension along which softmax will be computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from clew.checks.base import Check
from clew.checks.evidence.loss_inputs import BINARY, CLASSES, REGRESSION, outputs, sampled, series_at
from clew.checks.needs import any_of
from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.checks.trainings import TRAINING
from clew.checks.wording import shaped, too_few
from clew.records import signals
from clew.records.facts.loss_facts import LossFact, OutputFact
from clew.records.finding import Finding, Severity
from clew.records.site import Site

SOFTMAX = ("softmax", "log_softmax")
OTHERS = (*BINARY, *REGRESSION, "kl_div")


@dataclass(frozen=True)
class WrongSoftmaxDim(Check):
    id = "LOSS006"
    name = "wrong-softmax-dim"
    needs = (any_of(LossFact, OutputFact),)
    scope = TRAINING

    groups = ("loss-faults",)
    from_the_start = True

    samples: int = 3  # sampled batches, all of which must show it

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        for site, output in outputs(run, CLASSES + OTHERS):
            axes = series_at(run, signals.LOSS_INPUT_AXIS, site)
            if axes is None or len(axes) < self.samples or len(output.shape) < 2:
                continue
            axis = _axis(output, axes)
            if axis is not None:
                yield self._finding(site, output, axes, axis)

    def _finding(self, site: Site, output: OutputFact, axes: Series, axis: int) -> Finding:
        name = "log_softmax" if output.made_by == "log_softmax" or output.logged else "softmax"
        over = f"dimension {axis}" if axis >= 0 else "another dimension"
        batch = " (the batch)" if axis == 0 else ""
        return self.finding(
            Severity.ERROR,
            message=f"the {name} before {site.op} runs over {over}{batch} of {shaped(output.shape)}, "
            "not over the classes",
            fix=_fix(site.op or "", name),
            site=site,
            step=int(axes.steps[0]),
            evidence=axes.evidence("the dimension along which the loss's input sums to 1 (-1: none)"),
        )

    def unjudged(self, run: RunView) -> str | None:
        seen = sampled(run, signals.LOSS_INPUT_AXIS, CLASSES)
        return too_few(seen, self.samples, "batches") if seen else None


def _axis(output: OutputFact, axes: Series) -> int | None:
    """The wrong dimension, -1 if it is not known which; None if nothing is wrong."""
    values = axes.values
    if not np.isfinite(values).all() or output.shape[0] < 2:
        return None
    from_softmax = output.made_by in SOFTMAX
    same = int(values[0]) if (values == values[0]).all() else None
    if output.kind not in CLASSES:  # where the classes are is not fixed: only the batch is certainly wrong
        return 0 if same == 0 and from_softmax and output.dim in (0, -len(output.shape)) else None
    if output.classes == 1 or (values == 1).any():
        return None
    if same is not None and same >= 0:
        return same
    return -1 if from_softmax and not output.picked and not output.clamped else None


def _fix(op: str, name: str) -> str:
    if op == "cross_entropy":
        return "remove it: cross_entropy takes the raw scores and knows the class dimension"
    return f"torch.{name}(x, dim=1)  # over the classes of (N, C)"
