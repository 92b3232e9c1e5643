"""LOSS003 raw-scores-into-nll

## What it detects
An input of `nll_loss` that is not log-probabilities: raw scores, or probabilities without the logarithm.

## Why is this bad?
`nll_loss` only picks the entry of the right class and flips its sign. With raw scores, the loss falls
without bound as they grow; with probabilities, the gradient does not depend on how wrong the answer is.
Either way the model does not learn to prefer the right class over the others.

## How to fix
Give raw scores to `F.cross_entropy`, or take `F.log_softmax(scores, dim=1)` before `nll_loss`.

## Known problems
Scores that are unnormalised on purpose (energies with their own partition function) would be reported
too; they are rarely trained with `nll_loss`.

## References
- PyTorch docs, torch.nn.NLLLoss: the input is expected to contain log-probabilities of each class.
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
from clew.records.facts.loss_facts import LossFact, OutputFact
from clew.records.finding import Evidence, Finding, Severity
from clew.records.site import Site

NLL = ("nll_loss",)


@dataclass(frozen=True)
class RawScoresIntoNll(Check):
    id = "LOSS003"
    name = "raw-scores-into-nll"
    needs = (any_of(LossFact, OutputFact),)
    scope = TRAINING

    groups = ("loss-faults",)
    from_the_start = True

    # Log-probabilities have a logsumexp of 0; rounding of bfloat16 moves it by a hundredth.
    logsum: float = 0.1  # size of the logsumexp over the classes, median of a batch
    samples: int = 3  # sampled batches, all of which must show it
    simplex: float = 0.99  # share of rows that are probabilities; then only the logarithm is missing

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        for site, output in outputs(run, NLL):
            series = series_at(run, signals.LOSS_INPUT_LOGSUM, site)
            if output.classes == 1 or series is None or len(series) < self.samples:
                continue
            if series.share_above(self.logsum) == 1.0 and not _other_axis(run, site, output):
                yield self._finding(run, site, output, series)

    def _finding(self, run: RunView, site: Site, output: OutputFact, series: Series) -> Finding:
        rows = series_at(run, signals.LOSS_INPUT_SIMPLEX, site)
        probabilities = rows is not None and rows.share_above(self.simplex) == 1.0
        highest = series_at(run, signals.LOSS_INPUT.max, site)
        evidence = [
            series.evidence("|logsumexp| of the loss's input over the classes: 0 for log-probabilities")
        ]
        if highest is not None and highest.max > 0:
            evidence.append(Evidence(f"values up to {highest.max:.3g}: a log-probability is never above 0"))
        what = "probabilities" if probabilities else "raw scores"
        return self.finding(
            Severity.ERROR,
            message=f"nll_loss gets {what}, not log-probabilities: it does not compare the classes",
            fix="torch.log_softmax(x, dim=1) in place of the softmax"
            if probabilities
            else "F.cross_entropy(scores, target); or F.log_softmax(scores, dim=1) before nll_loss",
            site=site,
            step=int(series.steps[0]),
            evidence=evidence,
        )

    def unjudged(self, run: RunView) -> str | None:
        calls = [o for _, o in outputs(run, NLL) if o.classes != 1]
        seen = sampled(run, signals.LOSS_INPUT_LOGSUM, NLL)
        return too_few(seen, self.samples, "batches") if calls else None


def _other_axis(run: RunView, site: Site, output: OutputFact) -> bool:
    """Normalised, but over another dimension than the classes: that is another fault."""
    axis = series_at(run, signals.LOSS_INPUT_AXIS, site)
    if axis is None or (axis.values == 1).all():
        return False
    whole = output.made_by in ("softmax", "log_softmax") and not output.picked and not output.clamped
    return whole or bool(((axis.values >= 0) & (axis.values != 1)).any())
