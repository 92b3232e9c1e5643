"""LOSS001 softmax-before-cross-entropy

## What it detects
Probabilities (rows that are never negative and sum to 1) that go into `cross_entropy`, which applies a
softmax itself.

## Why is this bad?
The softmax is applied twice. Its input then lies between 0 and 1, so that even a perfect prediction has
a high loss (at least ln(1 + (C - 1) / e) for C classes, 1.46 for ten), and gradients become small:
training is slow and stalls early.

## How to fix
Return the raw scores (logits) from the model and remove the softmax; apply it only where you need
probabilities. Or use log-probabilities: `log_softmax` and `nll_loss`.

## Known problems
None known: logits whose rows are never negative and all sum to 1 do not occur by chance.
Log-probabilities, which are negative, are not reported: another softmax does not change them.

## References
- PyTorch docs, torch.nn.CrossEntropyLoss: the input is expected to contain unnormalised logits.
- Bridle, Probabilistic interpretation of feedforward classification network outputs, 1990.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.checks.trainings import TRAINING
from clew.checks.wording import too_few
from clew.records import signals
from clew.records.facts.loss_facts import LossFact
from clew.records.finding import Evidence, Finding, Severity
from clew.records.site import Line, Site


@dataclass(frozen=True)
class SoftmaxBeforeCrossEntropy(Check):
    id = "LOSS001"
    name = "softmax-before-cross-entropy"
    rank = 560
    needs = (LossFact,)
    scope = TRAINING
    confidence = "certain"

    groups = ("loss-faults",)
    from_the_start = True

    simplex: float = 0.99  # share of rows that are probabilities; rounding may spoil a row
    samples: int = 3  # sampled batches, all of which must show it

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        calls = _calls(run)
        for site, series in run.series(signals.LOSS_INPUT_SIMPLEX):
            call = calls.get((site.file, site.line))
            if call and len(series) >= self.samples and series.share_below(self.simplex) == 0.0:
                rows = series.finite()  # with one class there are no rows to judge: NaN
                if len(rows) == len(series):
                    yield self._finding(run, site, rows, call)

    def _finding(self, run: RunView, site: Site, rows: Series, call: LossFact) -> Finding:
        evidence = [rows.evidence("share of the loss's input rows that are probabilities")]
        layers = _softmax_layers(run)
        if layers:
            evidence.append(Evidence(f"produced by layer {run.name(layers[0])}", site=run.locate(layers[0])))
        if call.classes:
            floor = math.log1p((call.classes - 1) / math.e)
            evidence.append(
                Evidence(f"with {call.classes} classes even a perfect prediction can't get below {floor:.2f}")
            )
        return self.finding(
            Severity.ERROR,
            message="cross_entropy gets probabilities instead of logits, so softmax runs twice",
            fix=f"remove layer {run.name(layers[0])} (Softmax): return the logits"
            if layers
            else "remove the softmax: give cross_entropy the logits",
            site=site,
            step=int(rows.steps[0]),
            evidence=evidence,
        )

    def unjudged(self, run: RunView) -> str | None:
        calls = _calls(run)
        counts = [len(s) for t, s in run.series(signals.LOSS_INPUT_SIMPLEX) if (t.file, t.line) in calls]
        return too_few(max(counts, default=0), self.samples, "sampled batches") if calls else None


def _calls(run: RunView) -> dict[Line, LossFact]:
    """Calls of cross_entropy by their place, where there is more than one class."""
    calls = run.known(LossFact)
    return {(c.file, c.line): c for c in calls if c.kind == "cross_entropy" and c.classes != 1}


def _softmax_layers(run: RunView) -> list[Site]:
    """The last softmax layer of each model, if it has one."""
    return [
        Site(module=layer.path, root=model.root)
        for model in run.models.values()
        for layer in model.layers[::-1]
        if layer.kind in ("Softmax", "Softmax2d")
    ]
