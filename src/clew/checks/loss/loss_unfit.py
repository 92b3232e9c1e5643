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
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.loss_inputs import BINARY, CLASSES, REGRESSION, outputs, sampled, series_at
from clew.checks.evidence.recorded_facts import text
from clew.checks.needs import any_of
from clew.checks.run_view import RunView
from clew.checks.wording import shaped
from clew.records.facts.loss_facts import LossFact, LossFailedFact
from clew.records.finding import Evidence, Finding, Severity
from clew.records.site import Site

PRETRAINED = (1000, 21841, 21843)  # outputs of ImageNet models


@dataclass(frozen=True)
class LossUnfit(Check):
    id = "LOSS009"
    name = "loss-unfit"
    needs = (any_of(LossFact, LossFailedFact),)

    groups = ("loss-faults",)
    from_the_start = True

    samples: int = 5  # sampled batches, all of which must show it
    outside: float = 0.01  # share of a binary loss's targets that are not between 0 and 1
    # Labels that are equally frequent have the mean and spread of a uniform distribution; counts do not.
    uniform: float = 0.2  # relative distance from these at most
    fewest: int = 3  # classes: two may be the answers 0 and 1 of a squared loss
    most: int = 100  # classes: more whole numbers are rather quantities
    spare: float = 10.0  # times as many outputs of a pretrained size as there are labels, for advice

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        for failure in run.known(LossFailedFact):
            found = self._refused(failure)
            if found is not None:
                yield found
                return
        yield from self._single_output(run)
        yield from self._not_binary(run)
        yield from self._class_indices(run)
        yield from self._spare_outputs(run)

    def _refused(self, failure: LossFailedFact) -> Finding | None:
        reason = _reason(failure)
        if reason is None:
            return None
        return self.finding(
            Severity.ERROR,
            message=reason[0],
            fix=reason[1],
            site=failure.site,
            step=failure.step,
            evidence=Evidence(f"{failure.error}: {failure.message}"),
        )

    def _single_output(self, run: RunView) -> Iterator[Finding]:
        for site, output in outputs(run, CLASSES):
            if output.classes == 1 and len(output.shape) > 1:
                yield self.finding(
                    Severity.ERROR,
                    message=f"{site.op} over a single output {shaped(output.shape)} is always 0: there is "
                    "no other class to compare with",
                    fix="nn.BCEWithLogitsLoss() with targets 0.0 and 1.0; or one output per class",
                    site=site,
                    step=output.step,
                    evidence=Evidence(f"the loss's input has shape {shaped(output.shape)}"),
                )

    def _not_binary(self, run: RunView) -> Iterator[Finding]:
        for site, series in run.series("target.outside"):
            if site.op not in BINARY or len(series) < self.samples:
                continue
            if series.share_above(self.outside) == 1.0:
                low, high = _range(run, site)
                yield self.finding(
                    Severity.ERROR,
                    message=f"{site.op} takes targets between 0 and 1, but gets {low:.3g} to {high:.3g}: "
                    "the loss has no minimum",
                    fix="nn.CrossEntropyLoss() for class indices; y / 255 for pixels; (y + 1) / 2 for ±1",
                    site=site,
                    step=int(series.steps[0]),
                    evidence=series.evidence("share of targets that are not between 0 and 1"),
                )

    def _class_indices(self, run: RunView) -> Iterator[Finding]:
        typed = _integer_targets(run)
        for site, series in run.series("target.whole"):
            low, high = _range(run, site)
            enough = len(series) >= self.samples and series.share_below(1.0) == 0.0
            if site.op not in REGRESSION or not enough or low != 0.0 or not self._count_fits(high + 1):
                continue
            if self._looks_uniform(run, site, high + 1) and _one_value_each(run, site):
                kind = "integers " if (site.file, site.line) in typed else ""
                yield self.finding(
                    Severity.WARNING,
                    message=f"{site.op} on targets that look like class indices: {kind}0 to {high:.0f}, each "
                    "about as frequent; classes have no order and no distance",
                    fix=f"nn.Linear(…, {high + 1:.0f}) and nn.CrossEntropyLoss()(scores, target.long()); "
                    "if they are quantities, ignore this",
                    site=site,
                    step=int(series.steps[0]),
                    evidence=series.evidence("share of targets that are whole numbers"),
                )

    def _count_fits(self, classes: float) -> bool:
        return self.fewest <= classes <= self.most

    def _looks_uniform(self, run: RunView, site: Site, classes: float) -> bool:
        mean, std = (series_at(run, f"target.{name}", site) for name in ("mean", "std"))
        if mean is None or std is None:
            return False
        middle, wide = (classes - 1) / 2, math.sqrt((classes**2 - 1) / 12)
        off = max(abs(mean.median - middle) / middle, abs(std.median - wide) / wide)
        return off <= self.uniform

    def _spare_outputs(self, run: RunView) -> Iterator[Finding]:
        for site, output in outputs(run, CLASSES):
            highest = series_at(run, "target.max", site)
            if highest is None or output.classes not in PRETRAINED or len(highest) < self.samples:
                continue
            if (highest.max + 1) * self.spare <= output.classes:
                yield self.finding(
                    Severity.ADVICE,
                    message=f"the model has {output.classes} outputs, but labels only go up to "
                    f"{highest.max:.0f}: is it the head of the pretrained model?",
                    fix=f"model.fc = nn.Linear(model.fc.in_features, {highest.max + 1:.0f})",
                    site=site,
                    step=output.step,
                    evidence=highest.evidence("highest label of a batch"),
                )

    def unjudged(self, run: RunView) -> str | None:
        seen = sampled(run, "target.whole", REGRESSION + BINARY)
        return None if not seen or seen >= self.samples else f"needs {self.samples} batches, has {seen}"


def _reason(failure: LossFailedFact) -> tuple[str, str] | None:
    """What a refused loss call means, and what to do about it."""
    message, shape = failure.message.lower(), failure.shape("input")
    width = shape[1] if len(shape) > 1 else (shape[0] if shape else 0)
    low, high = failure.number("target_min"), failure.number("target_max")
    if failure.kind in CLASSES and "out of bounds" in message:
        what = f"{failure.kind} got labels {low:.0f} to {high:.0f} for {width} outputs (0 to {width - 1})"
        if low == 1 and high == width:
            return what, "target - 1  # labels start at 0"
        return what, f"nn.Linear(…, {high + 1:.0f}) as the last layer: one output per label"
    dtype = failure.target_dtype
    if (
        failure.kind in CLASSES
        and ("long" in message or "dtype" in message)
        and str(dtype).startswith("float")
    ):
        return f"{failure.kind} takes class indices as integers, but got {dtype}", "target.long()"
    if failure.kind in BINARY and str(dtype).startswith(("int", "bool", "uint")):
        return f"{failure.kind} takes float targets 0.0 and 1.0, but got {dtype}", "target.float()"
    if failure.kind in BINARY and "size" in message:
        target = failure.shape("target")
        what = f"{failure.kind} got an output of {shaped(shape)} for targets of {shaped(target)}"
        if width > 1 and len(target) < len(shape):
            return (
                f"{what}: it treats every output as a yes-or-no question",
                "nn.CrossEntropyLoss() for classes",
            )
        return what, "target.unsqueeze(1)  # or output.squeeze(1): both need the same shape"
    if failure.kind in BINARY and "target" in message and "between 0 and 1" in message:
        return f"{failure.kind} takes targets between 0 and 1, but got {low:.3g} to {high:.3g}", (
            "nn.CrossEntropyLoss() for class indices; targets / 255 for pixels"
        )
    return None


def _range(run: RunView, site: Site) -> tuple[float, float]:
    low, high = series_at(run, "target.min", site), series_at(run, "target.max", site)
    return (low.min, high.max) if low is not None and high is not None else (math.nan, math.nan)


def _integer_targets(run: RunView) -> set[tuple[str | None, int | None]]:
    facts = [f.data for f in run.facts("loss") if (text(f.data.get("target_dtype")) or "").startswith("int")]
    return {(call.file, call.line) for call in map(LossFact.read, facts)}


def _one_value_each(run: RunView, site: Site) -> bool:
    """A number for each sample; images and sequences of whole numbers are rather quantities."""
    places = run.known(LossFact)
    here = [c.input_shape for c in places if (c.kind, c.file, c.line) == (site.op, site.file, site.line)]
    return bool(here) and all(s is not None and math.prod(s[1:]) == 1 for s in here)
