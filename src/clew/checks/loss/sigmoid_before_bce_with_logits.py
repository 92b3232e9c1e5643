"""LOSS004 sigmoid-before-bce-with-logits

## What it detects
The output of a sigmoid that goes into `binary_cross_entropy_with_logits`, which applies a sigmoid itself.

## Why is this bad?
The sigmoid is applied twice. The loss takes values between 0 and 1 as logits, so its probability stays
between 0.5 and 0.73: a negative sample can't get a loss below 0.69, and the gradient shrinks to less
than a quarter.

## How to fix
Return the raw score from the model and use `torch.sigmoid` only where a probability is needed; or keep
the sigmoid and use `nn.BCELoss()`.

## Known problems
Compiled models are not checked: they hide which operation produced the output.

## References
- PyTorch docs, torch.nn.BCEWithLogitsLoss: combines a Sigmoid layer and the BCELoss in one class.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.loss_inputs import last_layer, outputs, sampled, series_at
from clew.checks.needs import any_of
from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.checks.trainings import TRAINING
from clew.checks.wording import too_few
from clew.records import signals
from clew.records.facts.loss_facts import LossFact, OutputFact
from clew.records.finding import Evidence, Finding, Severity
from clew.records.site import Site

WITH_LOGITS = ("binary_cross_entropy_with_logits",)


@dataclass(frozen=True)
class SigmoidBeforeBceWithLogits(Check):
    id = "LOSS004"
    name = "sigmoid-before-bce-with-logits"
    needs = (any_of(LossFact, OutputFact),)
    scope = TRAINING

    groups = ("loss-faults",)
    from_the_start = True

    samples: int = 3  # sampled batches, all of which must lie between 0 and 1

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        for site, output in outputs(run, WITH_LOGITS):
            low = series_at(run, signals.LOSS_INPUT.min, site)
            high = series_at(run, signals.LOSS_INPUT.max, site)
            if (
                output.made_by not in ("sigmoid", "hardsigmoid")
                or output.logged
                or low is None
                or high is None
            ):
                continue
            if len(low) >= self.samples and low.share_below(0.0) == 0.0 and high.share_above(1.0) == 0.0:
                yield self._finding(run, site, low, high)

    def _finding(self, run: RunView, site: Site, low: Series, high: Series) -> Finding:
        layer = last_layer(run, "Sigmoid", "Hardsigmoid")
        evidence = [
            high.evidence(
                f"the loss's input lies between {low.min:.3g} and {high.max:.3g}: it came out of a sigmoid"
            )
        ]
        if layer is not None:
            evidence.append(Evidence(f"produced by layer {run.name(layer)}", site=run.locate(layer)))
        return self.finding(
            Severity.ERROR,
            message="binary_cross_entropy_with_logits gets the output of a sigmoid: the sigmoid is "
            "applied twice",
            fix=f"remove layer {run.name(layer)} (Sigmoid): return the raw score"
            if layer is not None
            else "return x, without torch.sigmoid(x); or keep it and use nn.BCELoss()",
            site=site,
            step=int(high.steps[0]),
            evidence=evidence,
        )

    def unjudged(self, run: RunView) -> str | None:
        seen = sampled(run, signals.LOSS_INPUT.max, WITH_LOGITS)
        return too_few(seen, self.samples, "batches") if seen else None
