"""DATA010 train-val-preprocessing-mismatch

## What it detects
Evaluation inputs whose scale or mean differs from the training inputs of the same model: standard
deviations that differ more than twofold, or means three standard deviations apart, and by much more than
batches differ from each other. `clew data` compares the scale, mean and dtype of the datasets.

## Why is this bad?
A model trained on normalised data and evaluated on raw data (or the other way round) sees
values that it has never seen. Validation looks poor, or random, while training is fine.

## How to fix
Use the same code for both: the same mean and standard deviation (those of the training
data), the same resize and the same `ToTensor`. Only random augmentation should differ.

## Known problems
Data that really changes between training and validation, such as a later part of a growing time series,
looks the same if it has moved by more than three standard deviations. Very strong noise that is added
only in training looks like a different scale.

## References
- scikit-learn docs, Common pitfalls: inconsistent preprocessing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from clew.checks.base import Check
from clew.checks.evidence.data_feed import source_site, sources
from clew.checks.evidence.survey_facts import evaluation, place_of, samples_read, training, was_surveyed
from clew.checks.needs import any_of
from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.checks.wording import too_few
from clew.records import signals
from clew.records.dataset_survey import FieldSurvey
from clew.records.facts.document_facts import SurveyFact
from clew.records.finding import Finding, Severity
from clew.records.site import Site

FIX = "x_val = (x_val - x_train.mean(0)) / x_train.std(0)  # with the training data's mean and std"


@dataclass(frozen=True)
class TrainValPreprocessingMismatch(Check):
    id = "DATA010"
    name = "train-val-preprocessing-mismatch"
    needs = (
        any_of(signals.INPUT.mean, SurveyFact),
        any_of(signals.INPUT.std, SurveyFact),
        any_of(signals.EVAL_INPUT.mean, SurveyFact),
        any_of(signals.EVAL_INPUT.std, SurveyFact),
    )

    ratio: float = 2.2  # between the standard deviations; mixing two samples (mixup) gives 1.4
    shift: float = 3.0  # distance of the means, in standard deviations of the training inputs
    spread: float = 4.0  # how many times larger the difference must be than that between training batches
    samples: int = 5  # sampled training batches before the check runs
    few: int = 50  # samples of a dataset, below which its scale is not known

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        found = list(self._recorded(run))
        yield from found or self._surveyed(run)

    def _recorded(self, run: RunView) -> Iterator[Finding]:
        """In the batches that were trained on."""
        for site, means in run.series(signals.EVAL_INPUT.mean, "eval"):
            train = Site(site.module, site.op, phase="train", root=site.root)
            mean, std = run.at_site(signals.INPUT.mean, train), run.at_site(signals.INPUT.std, train)
            eval_std = run.at_site(signals.EVAL_INPUT.std, site)
            if mean is None or std is None or eval_std is None or len(mean.finite()) < self.samples:
                continue
            if self._ratio_is_off(std, eval_std) or self._shift_is_off(mean, std, means):
                yield self._finding(run, site, mean, std, means, eval_std)

    def _surveyed(self, run: RunView) -> Iterator[Finding]:
        for first in training(run)[:1]:
            for second in evaluation(run):
                ours, theirs = first.main, second.main
                if ours is None or theirs is None or not self._differ(ours, theirs):
                    continue
                yield self.finding(
                    Severity.WARNING,
                    message=f"a sample of {second.split} has {_describe(theirs)}, one of {first.split} "
                    f"{_describe(ours)} (medians): they are not preprocessed the same way",
                    fix=FIX,
                    site=place_of(second),
                    step=0,
                    evidence=[samples_read(first), samples_read(second)],
                )

    def _differ(self, ours: FieldSurvey, theirs: FieldSurvey) -> bool:
        if ours.kind != theirs.kind or ours.kind in ("tokens", "text", "object", "number"):
            return False
        if min(ours.samples, theirs.samples) < self.few or not ours.contrast or not theirs.contrast:
            return False
        ratio = abs(math.log(theirs.contrast / ours.contrast))
        own = max(ours.contrast_spread, theirs.contrast_spread)
        apart = abs((ours.level or 0.0) - (theirs.level or 0.0))
        moved = apart > max(self.shift * ours.contrast, self.spread * ours.level_spread)
        return ratio > max(math.log(self.ratio), self.spread * own) or moved

    def _ratio_is_off(self, std: Series, other: Series) -> bool:
        logs, others = np.log(std.finite().values), np.log(other.finite().values)
        if not len(others) or not np.isfinite(logs).all() or not np.isfinite(others).all():
            return bool((std.values > 0).all() and (other.values == 0).all())
        apart = abs(float(np.median(others) - np.median(logs)))
        own = max(float(logs.std()), float(others.std()))
        return apart > max(math.log(self.ratio), self.spread * own)

    def _shift_is_off(self, mean: Series, std: Series, other: Series) -> bool:
        apart = abs(other.median - mean.median)
        own = float(np.std(mean.finite().values))
        return apart > max(self.shift * std.median, self.spread * own) and std.median > 0

    def _finding(
        self, run: RunView, site: Site, mean: Series, std: Series, means: Series, eval_std: Series
    ) -> Finding:
        source = next((s for s in sources(run) if s.root == site.root), None)
        return self.finding(
            Severity.WARNING,
            message=f"in evaluation the input has mean {means.median:.3g} and standard deviation "
            f"{eval_std.median:.3g}, in training {mean.median:.3g} and {std.median:.3g}: they are not "
            "preprocessed the same way",
            fix=FIX,
            site=source_site(run, source) if source is not None else site,
            step=int(means.steps[0]),
            evidence=[
                eval_std.evidence("standard deviation of the input in evaluation"),
                std.evidence("standard deviation of the input in training"),
            ],
        )

    def unjudged(self, run: RunView) -> str | None:
        most = max((len(s.finite()) for _, s in run.series(signals.INPUT.mean, "train")), default=0)
        return None if was_surveyed(run) else too_few(most, self.samples, "sampled batches")


def _describe(field: FieldSurvey) -> str:
    return f"mean {field.level or 0.0:.3g} and standard deviation {field.contrast or 0.0:.3g}"
