"""NUM001 non-finite

## What it detects
A loss, or gradients that the optimizer is about to use, that are NaN or infinite. The finding
names the first step at which that happened, what was already bad then (parameters' gradients,
weights, or the batch itself), and shows the last finite values before it.

## Why is this bad?
NaN spreads: one NaN in a gradient makes its weights NaN in the same step, and every later
output with them. Nothing learned after that step can be used.

## How to fix
If the batch itself was bad, clean the data: `torch.isfinite(x).all()` finds the samples.
Otherwise look for the operations that make NaN out of ordinary numbers: `log(0)`, `sqrt` or
`norm` at 0 (its gradient is infinite), `0 / 0`, `exp` of large values. Keep their inputs away
from the edge, `torch.sqrt(x + 1e-8)`, or use the stable form: `log_softmax`,
`binary_cross_entropy_with_logits`. Where the numbers had grown step by step, the cause is a
learning rate that is too high or an exploding gradient.

## Known problems
Steps that `GradScaler` skips because of an infinite gradient are part of how it works and are
not counted: the optimizer never sees those gradients. A NaN loss that the script itself skips
is reported as a warning if later losses are finite again.

## References
- Goldberg, What every computer scientist should know about floating-point arithmetic, 1991.
- PyTorch docs, autograd mechanics: gradients for non-differentiable functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from clew.checks.api import Check
from clew.checks.facts import NonFinite as Report
from clew.checks.series import Series
from clew.checks.view import RunView
from clew.checks.wording import listed
from clew.records import Evidence, Finding, Severity, Site


@dataclass(frozen=True)
class NonFinite(Check):
    id = "NUM001"
    name = "non-finite"
    needs = ("loss|grad.norm|fact:nonfinite",)

    recovery: int = 3  # finite losses at the end, in a row, that show that the script skipped the NaN

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        reports = [Report.read(f.step, f.data) for f in run.facts("nonfinite")]
        losses = _first_bad(run, "loss")
        gradients = _first_bad(run, "grad.norm")
        steps = [r.step for r in reports] + [s for s, _ in (losses, gradients) if s is not None]
        if not steps:
            return
        step = min(steps)
        report = next((r for r in sorted(reports, key=lambda r: r.where != "loss") if r.step == step), None)
        in_loss = losses[0] == step or (report is not None and report.where == "loss")
        series = losses[1] if in_loss else gradients[1]
        only_loss = gradients[0] is None and all(r.where == "loss" for r in reports)
        yield self.finding(
            Severity.WARNING if only_loss and self._recovered(losses[1]) else Severity.ERROR,
            message=_message(step, in_loss, series, report),
            fix=_fix(report),
            site=_site(series, report),
            step=step,
            evidence=_evidence(step, series, report),
        )

    def _recovered(self, losses: Series | None) -> bool:
        if losses is None:
            return False
        return len(losses) > self.recovery and bool(np.isfinite(losses.last(self.recovery).values).all())


def _first_bad(run: RunView, signal: str) -> tuple[int | None, Series | None]:
    """The earliest NaN or infinity of a signal over all sites."""
    hits = [(step, s) for _, s in run.series(signal, "train") if (step := s.first_nonfinite()) is not None]
    return min(hits, key=lambda hit: hit[0], default=(None, None))


def _message(step: int, in_loss: bool, series: Series | None, report: Report | None) -> str:
    kind = "not finite"
    if series is not None:
        bad = series.since(step).values
        bad = bad[~np.isfinite(bad)]
        kind = "NaN" if len(bad) and np.isnan(bad[0]) else "infinite"
    subject = "the loss became" if in_loss else "the gradients became"
    text = f"{subject} {kind} at step {step}"
    if report and report.bad_inputs:
        return f"{text}: the batch itself holds non-finite values ({listed(report.bad_inputs)})"
    if report and report.parameters and not in_loss:
        return f"{text}, in {listed(report.parameters)}, while the loss was still finite"
    return text


def _fix(report: Report | None) -> str:
    if report and report.bad_inputs:
        return "clean the data; this finds the samples: torch.isfinite(x).flatten(1).all(1)"
    return "keep log, sqrt, division and exp away from their edge: torch.sqrt(x + 1e-8), torch.log(x + 1e-8)"


def _site(series: Series | None, report: Report | None) -> Site:
    if series is not None:
        return series.site
    return Site(file=report.file, line=report.line, phase="train") if report else Site()


def _evidence(step: int, series: Series | None, report: Report | None) -> Iterator[Evidence]:
    if series is not None:
        before = series.before(step).last(60)
        text = "no finite value before: it was the first one"
        if len(before):
            text = f"{series.signal} before it, up to step {step - 1}: last {before.values[-1]:.4g}"
        yield before.evidence(text)
    if report and report.bad_inputs:
        yield Evidence(f"non-finite in the batch: {listed(report.bad_inputs, 20)}")
    if report and report.bad_weights:
        yield Evidence(f"weights that were non-finite before the step: {listed(report.bad_weights, 20)}")
    if report and report.parameters:
        yield Evidence(f"non-finite gradients in: {listed(report.parameters, 20)}")
