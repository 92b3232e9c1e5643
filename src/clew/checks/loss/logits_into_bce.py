"""LOSS005 logits-into-bce

## What it detects
Raw scores (logits) that go into `binary_cross_entropy`, which takes probabilities: torch rejects them,
or they were clamped to the range from 0 to 1.

## Why is this bad?
The logarithm of a negative number is undefined, so torch raises an error. A clamp only hides that: where
it cuts, the gradient is zero, and the model never learns those samples.

## How to fix
Use `nn.BCEWithLogitsLoss()` on the raw scores, which is also more accurate; or apply `torch.sigmoid`
first.

## Known problems
On an accelerator torch ends the process with a device-side assertion, and the values can no longer be
read.

## References
- PyTorch docs, torch.nn.BCELoss and torch.nn.BCEWithLogitsLoss.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.loss_inputs import outputs, sampled, series_at
from clew.checks.needs import any_of
from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.checks.trainings import TRAINING
from clew.checks.wording import too_few
from clew.records import signals
from clew.records.facts.loss_facts import LossFact, LossFailedFact, OutputFact
from clew.records.finding import Evidence, Finding, Severity
from clew.records.site import Site

BCE = ("binary_cross_entropy",)
FIX = "nn.BCEWithLogitsLoss() (F.binary_cross_entropy_with_logits); or torch.sigmoid(x) before the loss"


@dataclass(frozen=True)
class LogitsIntoBce(Check):
    id = "LOSS005"
    name = "logits-into-bce"
    rank = 570
    needs = (any_of(LossFact, OutputFact, LossFailedFact),)
    scope = TRAINING

    groups = ("loss-faults",)
    from_the_start = True

    # A sigmoid reaches exactly 0 or 1 in float32 only for scores beyond ±17.
    ends: float = 0.05  # share of values that a clamp cut to exactly 0 or 1, median of the samples
    samples: int = 3  # sampled batches for that

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        for failure in run.known(LossFailedFact):
            if failure.kind in BCE and _out_of_range(failure):
                yield self._refused(failure)
                return
        for site, output in outputs(run, BCE):
            series = series_at(run, signals.LOSS_INPUT_ENDS, site)
            if output.made_by != "clamp" or output.logged or series is None:
                continue
            if len(series) >= self.samples and series.median > self.ends:
                yield self._clamped(site, series)

    def _refused(self, failure: LossFailedFact) -> Finding:
        low, high = failure.number("input_min"), failure.number("input_max")
        return self.finding(
            Severity.ERROR,
            message=f"binary_cross_entropy takes probabilities, but got values from {low:.3g} to {high:.3g}: "
            "the model returns raw scores",
            fix=FIX,
            site=failure.site,
            step=failure.step,
            evidence=Evidence(f"{failure.error}: {failure.message}"),
        )

    def _clamped(self, site: Site, series: Series) -> Finding:
        return self.finding(
            Severity.ERROR,
            message=f"binary_cross_entropy gets raw scores clamped to 0 and 1: {series.median:.0%} of them "
            "are at a limit, where there is no gradient",
            fix=FIX,
            site=site,
            step=int(series.steps[0]),
            evidence=series.evidence("share of values at exactly 0 or 1"),
        )

    def unjudged(self, run: RunView) -> str | None:
        seen = sampled(run, signals.LOSS_INPUT_ENDS, BCE)
        return too_few(seen, self.samples, "batches") if seen else None


def _out_of_range(failure: LossFailedFact) -> bool:
    if failure.input_nan or "input" not in failure.message:
        return False
    return failure.number("input_min") < 0.0 or failure.number("input_max") > 1.0
