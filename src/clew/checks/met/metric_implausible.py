"""MET002 metric-implausible

## What it detects
A logged metric with an impossible value for its name: an accuracy (precision, recall, F1, …) below 0 or
above 100%, an error below 0, or a loss that only grows, by about the training loss each time: a sum
that is never reset.

## Why is this bad?
The number is wrong, and so is every decision based on it: early stopping, the choice of a model, a
comparison.

## How to fix
Divide by the number of samples seen (`correct / total`), and set both to zero at the start of every
epoch.

## Known problems
A metric with an unknown name is not checked. Values between 1 and 100 are read as percentages, unless
they rise there from below 1 without ever falling.

## References
- scikit-learn docs, Metrics and scoring: ranges of common metrics.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from clew.checks.base import Check
from clew.checks.evidence.loss_trend import lead_loss
from clew.checks.evidence.metric_names import is_error, is_loss, is_share, logged_metrics
from clew.checks.needs import any_of
from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.records import signals
from clew.records.facts.loss_facts import LossFact
from clew.records.finding import Finding, Severity
from clew.records.site import Site


@dataclass(frozen=True)
class MetricImplausible(Check):
    id = "MET002"
    name = "metric-implausible"
    needs = (any_of(signals.LOSS, LossFact),)

    from_the_start = True

    percent: float = 100.0  # a share's highest possible value
    tolerance: float = 1e-3  # of the range, for rounding
    growing: int = 10  # least number of logged values of a loss that only grows
    like_loss: float = 2.0  # factor within which its growth per step must match the training loss
    # Chance makes a real share fall now and then, and a batch is a small part of the data.
    steady: int = 40  # least number of logged values of a share that never falls
    creeping: float = 0.2  # largest growth from one value to the next

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        for name, site, series in logged_metrics(run):
            finite = series.finite()
            if not len(finite):
                continue
            if is_share(name) or is_error(name):
                yield from self._out_of_range(name, site, finite)
            elif is_loss(name):
                yield from self._accumulates(run, name, site, finite)

    def _highest(self, series: Series) -> float:
        """A share that creeps from below 1 past it without ever falling is a sum, not a percentage."""
        values, rises = series.values, np.diff(series.values)
        enough = len(values) >= self.steady and values[0] <= 1
        creeps = enough and bool((rises >= 0).all()) and float(rises.max()) < self.creeping
        return 1.0 if creeps else self.percent

    def _out_of_range(self, name: str, site: Site, series: Series) -> Iterator[Finding]:
        high = self._highest(series) if is_share(name) else float("inf")
        bad = (series.values > high * (1 + self.tolerance)) | (series.values < -self.tolerance)
        if bad.any():
            worst = float(series.values[bad][-1])
            bounds = "be between 0 and 1, or 0 and 100%" if is_share(name) else "never be below 0"
            grows = len(series) > 2 and bool((np.diff(series.values) >= 0).all())
            why = ": it only grows" if grows and worst > 0 else ""
            yield self.finding(
                Severity.WARNING,
                message=f"{name} is logged as {worst:.4g}; it must {bounds}{why}",
                fix=f"{name} = correct / total  # and both set to 0 at the start of every epoch",
                site=site,
                step=int(series.steps[int(bad.argmax())]),
                evidence=series.evidence(f"{name} as logged"),
            )

    def _accumulates(self, run: RunView, name: str, site: Site, series: Series) -> Iterator[Finding]:
        loss = lead_loss(run)
        if loss is None or len(series) < self.growing or not (np.diff(series.values) > 0).all():
            return
        per_step = np.diff(series.values) / np.maximum(np.diff(series.steps), 1)
        ratio = float(np.median(per_step)) / loss.median if loss.median > 0 else 0.0
        fell = loss.last(len(loss) // 4 or 1).median < loss.first(len(loss) // 4 or 1).median
        if fell and 1 / self.like_loss <= ratio <= self.like_loss:
            yield self.finding(
                Severity.WARNING,
                message=f"{name} grows by about the training loss every step while that loss falls: "
                "a sum that is never reset",
                fix=f"{name} = running / steps; running = 0.0 at the start of every epoch",
                site=site,
                step=int(series.steps[0]),
                evidence=[series.evidence(f"{name} as logged"), loss.evidence("the training loss")],
            )

    def unjudged(self, run: RunView) -> str | None:
        logged = any(True for _ in logged_metrics(run))
        return None if logged else "no metric was logged: clew.log(accuracy=…)"
