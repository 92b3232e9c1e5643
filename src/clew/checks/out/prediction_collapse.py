"""OUT002 prediction-collapse

## What it detects
A model that predicts the same class, or nearly the same number, for every sample, batch after batch,
although the targets differ.

## Why is this bad?
The prediction no longer depends on the input: the model has learned the most frequent class, or the
mean. It is usually a consequence: of a wrong learning rate, dead or saturated layers, inputs that are
not normalised, labels that do not belong to their inputs, or one dominant class.

## How to fix
Look for the cause among the other findings first. Otherwise try a lower learning rate, normalised input
or class weights; and train on a single batch, to see whether the model can learn that
(cannot-overfit-batch).

## Known problems
The first hundred steps are not checked, nor are batches in which one class makes up most of the samples.

## References
- Karpathy, A recipe for training neural networks, 2019: input-independent baseline.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.loss_inputs import CLASSES, REGRESSION, series_at
from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.checks.trainings import TRAINING
from clew.records import signals
from clew.records.facts.loss_facts import LossFact
from clew.records.finding import Finding, Severity
from clew.records.site import Site

FIX = (
    "fix any other findings first; then try a lower learning rate or normalised input; to test: "
    "clew check --only input-ignored,cannot-overfit-batch train.py"
)


@dataclass(frozen=True)
class PredictionCollapse(Check):
    id = "OUT002"
    name = "prediction-collapse"
    needs = (LossFact,)
    scope = TRAINING

    caused_by = ("learning-faults", "labels-misaligned", "non-finite", "loss-term-imbalance")

    settled: int = 100  # steps, after which a model that learns predicts different values
    window: int = 8  # recorded steps at the end, all of which must show it
    span: int = 50  # least number of steps that the window covers
    same: float = 0.999  # share of a batch with the same predicted class
    balanced: float = 0.8  # largest share of the most frequent class of the targets
    many: int = 20  # classes; with more, a model predicts only the most frequent one for longer
    longer: int = 5  # times as many steps that it takes to settle with so many classes
    # If there is nothing to learn, the noise of training alone spreads predictions by a few percent.
    spread: float = 0.02  # of the targets' standard deviation over a batch

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        for site, series in run.series(signals.PREDICTION_TOP_SHARE, "train"):
            longer = self.longer if _classes(run, site) > self.many else 1
            recent = self._recent(series, self.settled * longer)
            if recent is not None and recent.min >= self.same and self._should_differ(run, site):
                yield self._one_class(site, series, recent)
        for site, series in run.series(signals.PREDICTION_SPREAD, "train"):
            recent = self._recent(series, self.settled)
            if recent is not None and site.op in REGRESSION and recent.max < self.spread:
                yield self._constant(site, series, recent)

    def _recent(self, series: Series, settled: int) -> Series | None:
        """The end of the run, if it is late and long enough."""
        recent = series.last(self.window).finite()
        if len(recent) < self.window or recent.steps[-1] < settled:
            return None
        while recent.steps[-1] - recent.steps[0] < self.span:
            longer = series.last(2 * len(recent)).finite()
            if len(longer) <= len(recent):
                return None
            recent = longer
        return recent

    def _should_differ(self, run: RunView, site: Site) -> bool:
        target = series_at(run, signals.PREDICTION_TARGET_TOP_SHARE, site)
        return target is not None and target.last(self.window).max < self.balanced

    def _one_class(self, site: Site, series: Series, recent: Series) -> Finding:
        return self.finding(
            Severity.WARNING,
            message="the model predicts the same class for every sample",
            fix=FIX,
            site=site,
            step=series.onset(series.values >= self.same),
            evidence=recent.evidence("share of the batch with the same predicted class"),
        )

    def _constant(self, site: Site, series: Series, recent: Series) -> Finding:
        return self.finding(
            Severity.WARNING,
            message=f"the model predicts nearly the same number for every sample: predictions vary "
            f"{recent.median:.2g} times as much as the targets",
            fix=FIX,
            site=site,
            step=series.onset(series.values < self.spread),
            evidence=recent.evidence("standard deviation of the predictions divided by that of the targets"),
        )

    def unjudged(self, run: RunView) -> str | None:
        last = max(
            (int(s.steps[-1]) for _, s in run.series(signals.PREDICTION_TOP_SHARE)), default=self.settled
        )
        return None if last >= self.settled else f"checked only after {self.settled} steps"


def _classes(run: RunView, site: Site) -> int:
    """The number of classes of the loss call."""
    calls = run.known(LossFact)
    here = [c.classes or 0 for c in calls if (c.kind, c.file, c.line) == (site.op, site.file, site.line)]
    return max(here, default=0) if site.op in CLASSES else 2
