"""LOSS009 loss-unfit

## What it detects
A loss that does not suit its targets: a regression loss on class indices, a binary loss with targets
that are not between 0 and 1, cross-entropy over a single output, labels that have no output unit, or
targets whose dtype or shape the loss rejects.

## Why is this bad?
Class indices have no order and no distance: class 3 is not "more" than class 1. Binary losses with
targets outside 0 to 1 have no minimum. The softmax over one output is always 1, so its loss is always 0.

## How to fix
Classes: `nn.CrossEntropyLoss` with one output per class and integer targets. Yes or no:
`nn.BCEWithLogitsLoss` with targets 0.0 and 1.0. Quantities: `nn.MSELoss` or another regression loss.

## Known problems
Quantities that are whole numbers starting at 0, all about equally frequent, look like class indices.
Counts, ratings and ages are usually not equally frequent.

## References
- PyTorch docs, torch.nn: loss functions, and their targets.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from clew.checks.base import Check
from clew.checks.evidence.loss_inputs import BINARY, CLASSES, REGRESSION, outputs, sampled, series_at
from clew.checks.needs import any_of
from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.checks.wording import shaped, too_few
from clew.records import signals
from clew.records.facts.loss_facts import LossFact, LossFailedFact
from clew.records.finding import Evidence, Finding, Severity
from clew.records.site import Line, Site

PRETRAINED = (1000, 21841, 21843)  # outputs of ImageNet models


@dataclass(frozen=True)
class OutsideTargets:
    """Targets of a binary loss that are not between 0 and 1."""

    share: float = 0.01  # share of a binary loss's targets that are not between 0 and 1

    def find(self, check: Check, run: RunView, samples: int) -> Iterator[Finding]:
        for site, series in run.series(signals.TARGET_OUTSIDE):
            if site.op not in BINARY or len(series) < samples or series.share_above(self.share) < 1.0:
                continue
            low, high = _range(run, site)
            yield check.finding(
                Severity.ERROR,
                message=f"{site.op} takes targets between 0 and 1, but gets {low:.3g} to {high:.3g}: "
                "the loss has no minimum",
                fix="nn.CrossEntropyLoss() for class indices; y / 255 for pixels; (y + 1) / 2 for ±1",
                site=site,
                step=int(series.steps[0]),
                evidence=series.evidence("share of targets that are not between 0 and 1"),
            )


@dataclass(frozen=True)
class ClassIndices:
    """Regression targets that are whole numbers from 0 on, one per sample, all about equally frequent."""

    # Labels that are equally frequent have the mean and spread of a uniform distribution; counts do not.
    uniform: float = 0.2  # largest relative distance from these
    fewest: int = 3  # classes; two may be the answers 0 and 1 of a squared loss
    most: int = 100  # classes; more whole numbers are probably quantities

    def find(self, check: Check, run: RunView, samples: int) -> Iterator[Finding]:
        for site, series in run.series(signals.TARGET_WHOLE):
            highest = _range(run, site)[1]
            if len(series) < samples or not self._are_labels(run, site, series):
                continue
            kind = "integers " if (site.file, site.line) in _integer_targets(run) else ""
            yield check.finding(
                Severity.WARNING,
                message=f"{site.op} on targets that look like class indices: {kind}0 to {highest:.0f}, each "
                "about equally frequent; classes have no order and no distance",
                fix=f"nn.Linear(…, {highest + 1:.0f}) and nn.CrossEntropyLoss()(scores, target.long()); "
                "if they are quantities, ignore this",
                site=site,
                step=int(series.steps[0]),
                evidence=series.evidence("share of targets that are whole numbers"),
            )

    def _are_labels(self, run: RunView, site: Site, whole: Series) -> bool:
        """Whether a regression loss gets such numbers; `whole` is the share of whole ones."""
        low, high = _range(run, site)
        if site.op not in REGRESSION or whole.share_below(1.0) > 0.0:
            return False
        count_fits = low == 0.0 and self.fewest <= high + 1 <= self.most
        return count_fits and self._are_uniform(run, site, high + 1) and _one_value_each(run, site)

    def _are_uniform(self, run: RunView, site: Site, classes: float) -> bool:
        mean, std = (series_at(run, signal, site) for signal in (signals.TARGET.mean, signals.TARGET.std))
        if mean is None or std is None:
            return False
        middle, wide = (classes - 1) / 2, math.sqrt((classes**2 - 1) / 12)
        off = max(abs(mean.median - middle) / middle, abs(std.median - wide) / wide)
        return off <= self.uniform


@dataclass(frozen=True)
class SpareOutputs:
    """The head of a pretrained model, with many more outputs than there are labels."""

    times: float = 10.0  # how many times more outputs than labels, for advice

    def find(self, check: Check, run: RunView, samples: int) -> Iterator[Finding]:
        for site, output in outputs(run, CLASSES):
            highest = series_at(run, signals.TARGET.max, site)
            if highest is None or output.classes not in PRETRAINED or len(highest) < samples:
                continue
            if (highest.max + 1) * self.times <= output.classes:
                yield check.finding(
                    Severity.ADVICE,
                    message=f"the model has {output.classes} outputs, but labels only go up to "
                    f"{highest.max:.0f}: is it the head of the pretrained model?",
                    fix=f"model.fc = nn.Linear(model.fc.in_features, {highest.max + 1:.0f})",
                    site=site,
                    step=output.step,
                    evidence=highest.evidence("highest label of a batch"),
                )


@dataclass(frozen=True)
class LossUnfit(Check):
    id = "LOSS009"
    name = "loss-unfit"
    rank = 570
    needs = (any_of(LossFact, LossFailedFact),)

    groups = ("loss-faults",)
    from_the_start = True

    samples: int = 5  # sampled batches, all of which must show it
    outside: OutsideTargets = field(default_factory=OutsideTargets)
    indices: ClassIndices = field(default_factory=ClassIndices)
    spare: SpareOutputs = field(default_factory=SpareOutputs)

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        refused = list(_refused_call(self, run))
        yield from refused or self._of_recorded_calls(run)

    def _of_recorded_calls(self, run: RunView) -> Iterator[Finding]:
        yield from _single_output(self, run)
        yield from self.outside.find(self, run, self.samples)
        yield from self.indices.find(self, run, self.samples)
        yield from self.spare.find(self, run, self.samples)

    def unjudged(self, run: RunView) -> str | None:
        seen = sampled(run, signals.TARGET_WHOLE, REGRESSION + BINARY)
        return too_few(seen, self.samples, "batches") if seen else None


def _refused_call(check: Check, run: RunView) -> Iterator[Finding]:
    """The first loss call that fails for a known reason."""
    for failure in run.known(LossFailedFact):
        reason = _reason(failure)
        if reason is not None:
            message, fix = reason
            yield check.finding(
                Severity.ERROR,
                message=message,
                fix=fix,
                site=failure.site,
                step=failure.step,
                evidence=Evidence(f"{failure.error}: {failure.message}"),
            )
            return


def _single_output(check: Check, run: RunView) -> Iterator[Finding]:
    """Cross-entropy over one output, which is always 0."""
    for site, output in outputs(run, CLASSES):
        if output.classes == 1 and len(output.shape) > 1:
            yield check.finding(
                Severity.ERROR,
                message=f"{site.op} over a single output {shaped(output.shape)} is always 0: there is "
                "no other class to compare with",
                fix="nn.BCEWithLogitsLoss() with targets 0.0 and 1.0; or one output per class",
                site=site,
                step=output.step,
                evidence=Evidence(f"the loss's input has shape {shaped(output.shape)}"),
            )


def _reason(failure: LossFailedFact) -> tuple[str, str] | None:
    """What a refused loss call means, and what to do about it."""
    if failure.kind in CLASSES:
        return _refused_classes(failure)
    return _refused_binary(failure) if failure.kind in BINARY else None


def _refused_classes(failure: LossFailedFact) -> tuple[str, str] | None:
    message, width, dtype = failure.message.lower(), _width(failure), str(failure.target_dtype)
    low, high = failure.number("target_min"), failure.number("target_max")
    if "out of bounds" in message:
        what = f"{failure.kind} got labels {low:.0f} to {high:.0f} for {width} outputs (0 to {width - 1})"
        if low == 1 and high == width:
            return what, "target - 1  # labels start at 0"
        return what, f"nn.Linear(…, {high + 1:.0f}) as the last layer: one output per label"
    if ("long" in message or "dtype" in message) and dtype.startswith("float"):
        return f"{failure.kind} takes class indices as integers, but got {dtype}", "target.long()"
    return None


def _refused_binary(failure: LossFailedFact) -> tuple[str, str] | None:
    message, dtype = failure.message.lower(), str(failure.target_dtype)
    if dtype.startswith(("int", "bool", "uint")):
        return f"{failure.kind} takes float targets 0.0 and 1.0, but got {dtype}", "target.float()"
    if "size" in message:
        shape, target = failure.shape("input"), failure.shape("target")
        what = f"{failure.kind} got an output of {shaped(shape)} for targets of {shaped(target)}"
        if _width(failure) > 1 and len(target) < len(shape):
            many = "it treats every output as a yes-or-no question"
            return f"{what}: {many}", "nn.CrossEntropyLoss() for classes"
        return what, "target.unsqueeze(1)  # or output.squeeze(1): both need the same shape"
    if "target" in message and "between 0 and 1" in message:
        low, high = failure.number("target_min"), failure.number("target_max")
        what = f"{failure.kind} takes targets between 0 and 1, but got {low:.3g} to {high:.3g}"
        return what, "nn.CrossEntropyLoss() for class indices; targets / 255 for pixels"
    return None


def _width(failure: LossFailedFact) -> int:
    """The number of outputs: the second dimension, else the only one."""
    shape = failure.shape("input")
    return shape[1] if len(shape) > 1 else (shape[0] if shape else 0)


def _range(run: RunView, site: Site) -> tuple[float, float]:
    low, high = series_at(run, signals.TARGET.min, site), series_at(run, signals.TARGET.max, site)
    return (low.min, high.max) if low is not None and high is not None else (math.nan, math.nan)


def _integer_targets(run: RunView) -> set[Line]:
    return {(c.file, c.line) for c in run.known(LossFact) if (c.target_dtype or "").startswith("int")}


def _one_value_each(run: RunView, site: Site) -> bool:
    """A number for each sample; images and sequences of whole numbers are rather quantities."""
    places = run.known(LossFact)
    here = [c.input_shape for c in places if (c.kind, c.file, c.line) == (site.op, site.file, site.line)]
    return bool(here) and all(s is not None and math.prod(s[1:]) == 1 for s in here)
