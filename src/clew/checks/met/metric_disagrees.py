"""MET001 metric-disagrees

## What it detects
A logged accuracy that contradicts the inputs of the loss: it is far from the share of right answers in
the same predictions, or lower than the loss allows.

## Why is this bad?
Decisions depend on the metric: a good model is thrown away, or a bad one is kept. Usually the metric is
computed wrongly: `argmax` over the batch instead of the classes, a threshold for probabilities used on
logits, predictions of one batch compared with labels of another.

## How to fix
`(scores.argmax(dim=1) == target).float().mean()` for scores of shape (N, C); `scores > 0` for logits of
yes-or-no questions, `> 0.5` for probabilities.

## Known problems
Accuracies on held-out data are not compared: a model may be bad there. A loss with class weights or
label smoothing only makes the comparison more lenient.

## References
- With cross-entropy L, at most L / ln 2 of the samples can be wrong: a wrong answer costs at least ln 2.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.loss_inputs import BINARY, CLASSES
from clew.checks.evidence.metric_names import is_accuracy, is_held_out, logged_metrics
from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.checks.trainings import TRAINING
from clew.records import signals
from clew.records.facts.loss_facts import LossFact
from clew.records.finding import Evidence, Finding, Severity
from clew.records.site import Site


@dataclass(frozen=True)
class MetricDisagrees(Check):
    id = "MET001"
    name = "metric-disagrees"
    needs = (LossFact,)
    scope = TRAINING

    caused_by = (
        "train-mode-in-evaluation",
        "weights-untied",
        "label-map-mismatch",
        "labels-misaligned",
        "metric-implausible",
        "loss-faults",
    )

    # The logged number may be a mean over an epoch in which the model became better.
    gap: float = 0.3  # between the share of right answers in the loss and the logged accuracy
    learned: float = 0.6  # share of right answers; with fewer, this is not checked
    logged: int = 3  # values of the metric that are needed
    window: int = 10  # sampled batches at the end that are compared

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        truth = self._truth(run)
        if truth is None:
            return
        place, right = truth
        seen = right.last(self.window)
        for site, series, name in accuracies(run):
            recent = series.since(int(seen.steps[0])).finite()
            if len(series) < self.logged or not len(recent):
                continue
            value = recent.last(self.window).max
            value = value / 100 if series.max > 1.0 else value
            if seen.median >= self.learned and value < seen.median - self.gap:
                yield self._finding(run, site, name, recent, value, place, seen)

    def _truth(self, run: RunView) -> tuple[Site, Series] | None:
        """The share of right answers at the only classification loss; with several it is not known which."""
        found = [
            (site, series.finite())
            for site, series in run.series(signals.PREDICTION_ACCURACY, "train")
            if site.op in CLASSES + BINARY and len(series.finite()) >= self.window
        ]
        return found[0] if len(found) == 1 else None

    def _finding(
        self, run: RunView, site: Site, name: str, recent: Series, value: float, place: Site, seen: Series
    ) -> Finding:
        loss = run.at_site(signals.LOSS_CALL_VALUE, place)
        evidence = [
            recent.evidence(f"{name} as logged"),
            seen.evidence(f"share of right answers in {place.op}, {seen.median:.0%}"),
        ]
        if loss is not None and (least := 1 - loss.last(self.window).median / math.log(2)) > value:
            evidence.append(Evidence(f"a loss this low means an accuracy of at least {least:.0%}"))
        return self.finding(
            Severity.WARNING,
            message=f"{name} is logged as {value:.0%}, but {seen.median:.0%} of the answers in {place.op} "
            "are right",
            fix="(scores.argmax(dim=1) == target).float().mean()  # over the classes, not the batch",
            site=site,
            step=int(recent.steps[0]),
            evidence=evidence,
        )

    def unjudged(self, run: RunView) -> str | None:
        if not any(True for _ in accuracies(run)):
            return "no accuracy was logged: clew.log(accuracy=…)"
        return None if self._truth(run) is not None else f"needs {self.window} sampled batches of one loss"


def accuracies(run: RunView) -> Iterator[tuple[Site, Series, str]]:
    """Accuracies of training that were logged, with their names."""
    for name, site, series in logged_metrics(run):
        if is_accuracy(name) and not is_held_out(name):
            yield site, series, name
