"""OUT001 output-activation-unfit

## What it detects
A final activation that does not suit the loss or the targets: a ReLU, sigmoid or tanh on the scores of
cross-entropy, a softmax before a binary loss with logits, a softmax over a single unit, or an activation
(ReLU, sigmoid, tanh, softmax) whose range does not include the targets of a regression.

## Why is this bad?
The model can't learn values that the activation can't output: with scores that are never negative or
never above 1 it can't become confident, and a ReLU can't reach a target of -2. Where the activation is
flat, its gradient is zero.

## How to fix
Keep the last layer linear and let the loss do the rest; or scale the targets to the activation's range.

## Known problems
Compiled models are not checked: they hide which operation produced the output. A small share of the
targets may lie outside the range because of noise.

## References
- Goodfellow, Bengio and Courville, Deep learning, 2016, section 6.2.2: output units.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.loss_inputs import BINARY, CLASSES, REGRESSION, last_layer, outputs, series_at
from clew.checks.needs import any_of
from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.checks.trainings import TRAINING
from clew.checks.wording import too_few
from clew.records import signals
from clew.records.facts.loss_facts import LossFact, OutputFact
from clew.records.finding import Evidence, Finding, Severity
from clew.records.site import Site

LAYERS = {
    "relu": "ReLU",
    "sigmoid": "Sigmoid",
    "tanh": "Tanh",
    "softmax": "Softmax",
    "log_softmax": "LogSoftmax",
    "hardsigmoid": "Hardsigmoid",
    "softplus": "Softplus",
}
RANGES = {
    "relu": "below 0",
    "softplus": "below 0",
    "exp": "below 0",
    "sigmoid": "outside 0 to 1",
    "hardsigmoid": "outside 0 to 1",
    "softmax": "outside 0 to 1",
    "tanh": "outside -1 to 1",
}
ON_SCORES = {
    "relu": "class scores can't be negative",
    "sigmoid": "class scores stay between 0 and 1, so the model can't become confident",
    "hardsigmoid": "class scores stay between 0 and 1, so the model can't become confident",
    "tanh": "class scores stay between -1 and 1, so the model can't become confident",
}


@dataclass(frozen=True)
class OutputActivationUnfit(Check):
    id = "OUT001"
    name = "output-activation-unfit"
    needs = (any_of(LossFact, OutputFact),)
    scope = TRAINING

    groups = ("loss-faults",)
    from_the_start = True

    samples: int = 5  # sampled batches that are needed
    # Noise of half the range's width around targets at its ends puts a tenth of them outside.
    outside: float = 0.1  # share of targets out of the activation's reach, median of the samples

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        for site, output in outputs(run, CLASSES + BINARY + REGRESSION):
            low = series_at(run, signals.LOSS_INPUT.min, site)
            if output.logged or low is None or len(low) < self.samples:
                continue
            reason = self._reason(run, site, output)
            if reason is not None:
                severity, message, seen = reason
                yield self._finding(run, site, output, severity, message, seen)

    def _reason(
        self, run: RunView, site: Site, output: OutputFact
    ) -> tuple[Severity, str, Series | None] | None:
        made = output.made_by
        if made in ("softmax", "log_softmax") and _one_unit(output):
            return Severity.ERROR, "the softmax over a single unit is always 1: nothing is learned", None
        if output.kind in CLASSES and made in ON_SCORES and output.classes != 1:
            severity = Severity.WARNING if made == "tanh" else Severity.ERROR
            return severity, f"{output.kind} gets the output of a {made}: {ON_SCORES[made]}", None
        if output.kind.endswith("with_logits") and made in ("softmax", "relu"):
            return Severity.ERROR, f"{output.kind} gets the output of a {made}, but takes raw scores", None
        if output.kind in REGRESSION and made in RANGES:
            outside = series_at(run, signals.TARGET_OUTSIDE, site)
            if outside is not None and outside.median > self.outside:
                return (
                    Severity.ERROR,
                    f"{outside.median:.0%} of the targets lie {RANGES[made]}, out of reach for "
                    + (f"the {made} that the model ends with"),
                    outside,
                )
        return None

    def _finding(
        self,
        run: RunView,
        site: Site,
        output: OutputFact,
        severity: Severity,
        message: str,
        seen: Series | None,
    ) -> Finding:
        layer = last_layer(run, LAYERS.get(output.made_by, ""))
        values = series_at(run, signals.LOSS_INPUT.max, site)
        evidence = [] if seen is None else [seen.evidence("share of targets that the activation can't reach")]
        if values is not None:
            evidence.append(values.evidence(f"largest value that {site.op} gets"))
        if layer is not None:
            evidence.append(Evidence(f"produced by layer {run.name(layer)}", site=run.locate(layer)))
        return self.finding(
            severity,
            message=message,
            fix=f"remove layer {run.name(layer)} ({LAYERS[output.made_by]}): end with the linear layer"
            if layer is not None
            else f"return the last linear layer's output, without torch.{output.made_by}",
            site=site,
            step=output.step,
            evidence=evidence,
        )

    def unjudged(self, run: RunView) -> str | None:
        return too_few(run.longest(signals.LOSS_INPUT.min), self.samples, "sampled batches")


def _one_unit(output: OutputFact) -> bool:
    """The softmax's own dimension has one entry, as far as the loss's input shows it."""
    if output.dim is None or output.picked or len(output.shape) < 2 or output.shape[0] < 2:
        return False
    last = output.dim in (1, -1) and len(output.shape) == 2
    return last and output.shape[1] == 1
