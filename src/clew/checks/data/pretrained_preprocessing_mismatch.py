"""DATA015 pretrained-preprocessing-mismatch

## What it detects
Inputs that differ from those that the loaded weights were trained on: in the first forward passes, the
values at the first BatchNorm have a spread several times larger or smaller than its running statistics,
or a mean several standard deviations away.

## Why is this bad?
The filters of a pretrained model expect inputs preprocessed as in their training: the same range, mean
and order of channels. Otherwise what they have learned is lost, and fine-tuning starts worse than
training from scratch.

## How to fix
Use the preprocessing that belongs to the weights, in torchvision `weights.transforms()`: usually
pixels in 0..1, minus `[0.485, 0.456, 0.406]`, divided by `[0.229, 0.224, 0.225]`.

## Known problems
Models without BatchNorm keep no statistics of their inputs and are not checked. A new domain shifts the
statistics too, but rarely threefold.

## References
- torchvision docs, Models and pre-trained weights: using the inference transforms.
- Li et al., Revisiting batch normalization for practical domain adaptation, 2016.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.data_feed import feeding_site
from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.records import signals
from clew.records.finding import Finding, Severity
from clew.records.site import Site


@dataclass(frozen=True)
class PretrainedPreprocessingMismatch(Check):
    id = "DATA015"
    name = "pretrained-preprocessing-mismatch"
    needs = (
        signals.PRETRAINED_SHIFT,
        signals.PRETRAINED_SCALE,
    )

    groups = ("scale-faults",)

    shift: float = 3.0  # standard deviations from the running mean, median over channels; new domains give 1
    scale: float = 3.0  # times wider or narrower than the running variance; pixels left in 0..1 give 4
    forwards: int = 1  # forward passes to compare before the statistics adapt

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        for site, shifts in run.series(signals.PRETRAINED_SHIFT):
            scales = run.at_site(signals.PRETRAINED_SCALE, site)
            if scales is None or len(shifts.finite()) < self.forwards or not len(scales.finite()):
                continue
            shift, scale = float(shifts.finite().values[0]), float(scales.finite().values[0])
            if shift >= self.shift or scale >= self.scale or 0 < scale <= 1 / self.scale:
                yield self._finding(run, site, shifts, shift, scale)

    def _finding(self, run: RunView, site: Site, shifts: Series, shift: float, scale: float) -> Finding:
        wide = f"{scale:.3g} times wider" if scale >= 1 else f"{1 / max(scale, 1e-12):.3g} times narrower"
        return self.finding(
            Severity.WARNING,
            message=f"the inputs are not what the loaded weights were trained on: at {run.name(site)} they "
            f"are {wide} than its running statistics, and their mean is {shift:.2g} standard deviations off",
            fix="preprocess = weights.transforms()  # the preprocessing of these weights: range, mean, "
            "standard deviation",
            site=feeding_site(run, site),
            step=int(shifts.steps[0]),
            evidence=[
                shifts.evidence(
                    "distance of the channel means from the running means, in standard deviations"
                ),
            ],
        )
