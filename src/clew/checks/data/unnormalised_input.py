"""DATA001 unnormalised-input

## What it detects
Values far from unit scale at the input of a model's first layer: a root mean square above 10, or
features whose standard deviations differ a hundredfold, with large values among them. What counts is
what the layer gets, after any normalisation inside the model. Where no layer was recorded, `clew data`
gives a hint based on the dataset alone.

## Why is this bad?
Initialisation, learning rates and normalisation layers assume inputs of about unit scale. Large inputs
make the first layer's gradients equally large, so that no single learning rate suits all layers; they
saturate sigmoid and tanh, and the largest feature dominates the others.

## How to fix
Subtract the mean and divide by the standard deviation of the training data, feature by feature
for tables and channel by channel for images; images from 0 to 255 are divided by 255 first. Use
the same numbers in evaluation.

## Known problems
A normalisation layer right after the first layer compensates for much of this; it is reported anyway,
since the gradients of the first layer are still out of scale.

## References
- LeCun et al., Efficient BackProp, 1998, section 4.3.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.survey_facts import place_of, samples_read, training, was_surveyed
from clew.checks.needs import any_of
from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.checks.wording import too_few
from clew.records import signals
from clew.records.dataset_survey import FieldSurvey
from clew.records.facts.document_facts import SurveyFact
from clew.records.finding import Finding, Severity
from clew.records.signal_types import Signal
from clew.records.site import Site


@dataclass(frozen=True)
class InputScale:
    """What the first layer got, over the judged samples."""

    mean: float
    std: float
    low: float
    high: float
    spread: float

    @property
    def rms(self) -> float:
        return math.hypot(self.mean, self.std)

    @property
    def largest(self) -> float:
        return max(abs(self.low), abs(self.high))


@dataclass(frozen=True)
class UnnormalisedInput(Check):
    id = "DATA001"
    name = "unnormalised-input"
    needs = (
        any_of(signals.FIRST_INPUT.mean, SurveyFact),
        any_of(signals.FIRST_INPUT.std, SurveyFact),
        any_of(signals.FIRST_INPUT.min, SurveyFact),
        any_of(signals.FIRST_INPUT.max, SurveyFact),
    )

    groups = ("scale-faults",)
    caused_by = ("pretrained-preprocessing-mismatch", "dataset-mutates")

    # At a root mean square of r the first layer's curvature grows as r²: at 10 it needs a learning
    # rate a hundred times smaller than the other layers. Standardised data has 1, images in 0..1 less.
    rms: float = 10.0  # root mean square of all values of the input
    spread: float = 100.0  # largest over median standard deviation of the features
    large: float = 10.0  # absolute value that counts as large: ten standard deviations of unit data
    samples: int = 3  # sampled batches before the check runs
    window: int = 20  # sampled batches to check, starting with the first
    few: int = 20  # samples of a dataset, below which its scale is not known

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        found = list(self._recorded(run))
        yield from found or self._surveyed(run)

    def _recorded(self, run: RunView) -> Iterator[Finding]:
        """In the batches that were trained on."""
        for site, means in run.series(signals.FIRST_INPUT.mean):
            scale = self._input_scale(run, site)
            if scale is None or not math.isfinite(scale.rms):
                continue
            if scale.rms > self.rms or (scale.spread >= self.spread and scale.largest > self.large):
                yield self._finding(run, site, means, scale)

    def _surveyed(self, run: RunView) -> Iterator[Finding]:
        """From the data alone: only a hint, since the model may normalise it first."""
        if run.has(signals.FIRST_INPUT.mean):
            return
        for survey in training(run):
            field = survey.main
            if field is None or not _is_measured(field) or field.samples < self.few:
                continue
            if any(outlier.field == field.name for outlier in survey.outliers):
                continue  # fix those first
            scale = _scale_of(field)
            if scale.rms > self.rms or (scale.spread >= self.spread and scale.largest > self.large):
                uneven = scale.spread >= self.spread
                spread = (
                    f"; the columns' standard deviations differ {scale.spread:.0f}-fold" if uneven else ""
                )
                yield self.finding(
                    Severity.ADVICE,
                    message=f"the samples of {survey.split} range from {scale.low:.4g} to {scale.high:.4g} "
                    f"(mean {scale.mean:.3g}, standard deviation {scale.std:.3g}{spread}): are they "
                    "normalised before the first layer?",
                    fix=_fix(scale, self.spread),
                    site=place_of(survey),
                    step=0,
                    evidence=samples_read(survey),
                    confidence="possible",
                )

    def _finding(self, run: RunView, site: Site, means: Series, scale: InputScale) -> Finding:
        uneven = scale.spread >= self.spread
        message = f"the input of {run.name(site)} ranges from {scale.low:.4g} to {scale.high:.4g}" + (
            f", and its features' standard deviations differ {scale.spread:.0f}-fold"
            if uneven
            else f" (mean {scale.mean:.3g}, standard deviation {scale.std:.3g})"
        )
        return self.finding(
            Severity.WARNING,
            message=f"{message}: it is not normalised",
            fix=_fix(scale, self.spread),
            site=site,
            step=int(means.steps[0]),
            evidence=means.first(self.window).evidence(
                f"mean of the input; root mean square {scale.rms:.3g}, normalised data has about 1"
            ),
        )

    def _input_scale(self, run: RunView, site: Site) -> InputScale | None:
        """Medians over the first samples, and the widest range; None if there are too few."""
        measured = signals.FIRST_INPUT
        mean, std = self._samples(run, measured.mean, site), self._samples(run, measured.std, site)
        low, high = self._samples(run, measured.min, site), self._samples(run, measured.max, site)
        if mean is None or std is None or low is None or high is None:
            return None
        if min(len(mean), len(std), len(low), len(high)) < self.samples:
            return None
        spread = self._samples(run, signals.FIRST_INPUT_FEATURE_SPREAD, site)
        uneven = spread.median if spread is not None and len(spread) else 1.0
        return InputScale(mean.median, std.median, low.min, high.max, uneven)

    def _samples(self, run: RunView, signal: Signal, site: Site) -> Series | None:
        series = run.at_site(signal, site)
        return None if series is None else series.first(self.window).finite()

    def unjudged(self, run: RunView) -> str | None:
        most = max((len(s.finite()) for _, s in run.series(signals.FIRST_INPUT.mean)), default=0)
        return None if was_surveyed(run) else too_few(most, self.samples, "sampled batches")


def _is_measured(field: FieldSurvey) -> bool:
    """Floating-point values: whole numbers have to be converted anyway, or are indices."""
    return field.kind in ("image", "vector", "wave", "array") and "float" in field.dtypes[0].what


def _scale_of(field: FieldSurvey) -> InputScale:
    """As most samples are: one odd value must not speak for all."""
    mean, std, low, high = (v or 0.0 for v in (field.level, field.contrast, field.low, field.high))
    return InputScale(mean, std, low, high, field.spread)


def _fix(scale: InputScale, uneven: float) -> str:
    if scale.spread >= uneven / 10:  # no fault yet, but then one scale does not fit all features
        return "x = (x - x_train.mean(0)) / x_train.std(0)  # feature by feature, from the training data"
    if scale.low >= 0 and 128 < scale.high <= 255:  # what 8-bit images look like
        return "x = x / 255  # pixel values; then subtract the mean and divide by the standard deviation"
    if scale.std == 0:
        return f"x = x / {scale.largest:.4g}"
    return f"x = (x - {scale.mean:.4g}) / {scale.std:.4g}"
