"""LOOP004 accumulation-unscaled

## What it detects
Gradient accumulation, k batches and backward passes of the same mean loss for each optimizer step, in
which the loss is not divided by k.

## Why is this bad?
`backward()` adds up gradients: the step uses k times the intended gradient. For SGD that is a learning
rate k times as high; for Adam and similar optimizers, which divide by the gradient's magnitude, it changes
little, but gradient clipping and thresholds still see values k times as large.

## How to fix
`(loss / k).backward()`, or a learning rate chosen for the sum.

## Known problems
There are two explanations: the division was forgotten, or the learning rate was chosen for the sum.
Losses with `reduction="sum"`, sums of several terms, and optimizers with a closure are not checked. With
Adam-like optimizers, without a loader, or where clipping removes the magnitude, it is only advice.

## References
- PyTorch docs, Automatic mixed precision examples: gradient accumulation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.learning_rate_evidence import scale_free
from clew.checks.evidence.loop_facts import orders, per_step
from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.checks.trainings import PHASE
from clew.records import signals
from clew.records.facts.loss_facts import LossFact
from clew.records.facts.step_facts import BackwardFact
from clew.records.finding import Evidence, Finding, Severity
from clew.records.site import Site

# Last operations of a loss that is a mean over the batch and has not been divided since.
MEANS = re.compile(
    r"(NllLoss|NllLoss2D|MseLoss|L1Loss|SmoothL1Loss|HuberLoss|BinaryCrossEntropy\w*|SoftMarginLoss|Mean)"
    r"Backward\d*"
)
BATCHES = re.compile(r"\([^()]*d[^()]*b[^()]*\)\+|d[^s]*b[^s]*d[^s]*b[^s]*s")


@dataclass(frozen=True)
class AccumulationUnscaled(Check):
    id = "LOOP004"
    name = "accumulation-unscaled"
    needs = (
        signals.LOSS,
        BackwardFact,
    )
    scope = PHASE

    groups = ("step-size-faults",)

    least: int = 5  # steps with several backward passes
    sustained: float = 0.8  # share of the steps that have them; the last of an epoch may be alone
    clipped: float = 0.9  # share of the steps that are clipped; with more, the gradient's scale is irrelevant

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        if any(optimizer.closure for optimizer in run.optimizers) or _thrown_away(run):
            return
        for site, series in run.series(signals.LOSS, "train"):
            counts = per_step(series)
            several = counts.share_above(1)
            if len(counts) >= self.least and several >= self.sustained and self._is_mean(run, site):
                yield self._finding(run, counts)

    def _finding(self, run: RunView, counts: Series) -> Finding:
        k = round(counts.median)
        sensitive = not scale_free(run) and _from_loader(run) and not self._is_clipped(run)
        effect = (
            f"the effective learning rate is {k} times the one in the code (unless the learning rate was "
            "chosen for the sum)"
            if sensitive
            else "this matters only for clipping and similar code"
        )
        return self.finding(
            Severity.WARNING if sensitive else Severity.ADVICE,
            message=f"{k} backward passes per step add up, and the loss is not divided by {k}: {effect}",
            fix=f"(loss / {k}).backward()",
            site=counts.site,
            step=int(counts.steps[0]),
            evidence=[counts.evidence("backward passes in each optimizer step"), *_kinds(run, counts.site)],
        )

    def _is_clipped(self, run: RunView) -> bool:
        """Whether clipping to a fixed norm makes the scale of the gradient irrelevant."""
        limits = dict(run.series(signals.CLIP_LIMIT))
        return any(
            site in limits and series.share_above(limits[site].median) > self.clipped
            for site, series in run.series(signals.CLIP_NORM)
        )

    def _is_mean(self, run: RunView, site: Site) -> bool:
        ops = _ops(run, site)
        sums = any(fact.reduction not in ("", "mean") for fact in run.known(LossFact))
        return bool(ops) and all(MEANS.fullmatch(op) for op in ops) and not sums


def _ops(run: RunView, site: Site) -> list[str]:
    """The last operations of the losses at this `backward()` call."""
    known = run.known(BackwardFact)
    return [fact.op for fact in known if (fact.file, fact.line) == (site.file, site.line)]


def _kinds(run: RunView, site: Site) -> list[Evidence]:
    return [Evidence(f"the last operation of the loss is {_ops(run, site)[0].partition('Backward')[0]}")]


def _thrown_away(run: RunView) -> bool:
    return any(series.skip(1).median > 0 for _, series in run.series(signals.GRAD_LOST))


def _from_loader(run: RunView) -> bool:
    known = orders(run)
    return bool(known) and BATCHES.search(known[0].pattern) is not None
