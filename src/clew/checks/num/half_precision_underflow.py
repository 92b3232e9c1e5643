"""NUM003 half-precision-underflow

## What it detects
Gradients that are computed in float16 and are so small that the format rounds them to zero: many of a
layer's gradients are exactly zero, and most of the others lie within four bits of the smallest number,
6e-8. And weights in 16 bits whose updates are lost: the optimizer computes a change, which disappears
when it is added to the much larger weight.

## Why is this bad?
A gradient of zero changes nothing. The layers far from the loss stop learning first; the loss falls
slowly, or not at all, with no other sign.

## How to fix
With float16 autocast, multiply the loss before the backward pass and divide the gradients after it:
`scaler = torch.amp.GradScaler(device)`, `scaler.scale(loss).backward()`, `scaler.step(optimizer)`,
`scaler.update()`. Or use bfloat16, which needs no scaling. Keep the weights themselves in float32:
remove `model.half()` or `model.bfloat16()` and compute under `torch.autocast`.

## Known problems
Gradients also vanish at the end of a successful training: nothing is reported once the loss has fallen
to a fifth of its start. Inactive units and unused embeddings have zero gradients in any format; they
count only where the other gradients are close to the limit too.

## References
- Micikevicius et al., Mixed precision training, 2018, section 3.2.
- Zamirai et al., Revisiting bfloat16 training, 2020.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from clew.checks.base import Check
from clew.checks.evidence.number_formats import (
    Format,
    layer_formats,
    parameter_formats,
    progress,
    share_below_bin,
)
from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.checks.wording import too_few
from clew.records import signals
from clew.records.facts.step_facts import PatternFact
from clew.records.finding import Evidence, Finding, Severity
from clew.records.site import Site

Gradient = tuple[Site, Series, Format]  # with the share of its zeros
Update = tuple[Site, Series, float, Format]  # shares of the weight that stays, and of zeros in its gradient


@dataclass(frozen=True)
class VanishedGradients:
    """Gradients that the format rounds to zero."""

    # Gradients with a normal distribution and a standard deviation of the smallest number itself
    # come out as zero in 38% of the cases, and none of the others is as large as 2 ** 4 of it.
    zeros: float = 0.38  # share of a gradient's elements that are zero
    coarse: float = 0.8  # share of the other elements that are within `bits` of the smallest number
    bits: int = 4  # above the smallest number; a value with so few bits has one or two significant digits

    def find(self, run: RunView, window: int) -> list[Gradient]:
        """The gradients at the edge of the format and below it, the worst first."""
        judged = [hit for hit in _half_gradients(run) if len(hit[1]) >= window]
        at_edge = {run.key(hit[0]) for hit in judged if self._at_edge(run, *hit, window)}
        if not at_edge and not _nothing_left(run, judged, window):
            return []
        # A layer of nothing but zeros may be dead; next to one at the edge, it is below the edge.
        gone = {run.key(site) for site, zeros, _ in judged if zeros.last(window).min == 1}
        found = [hit for hit in judged if run.key(hit[0]) in at_edge | gone]
        return sorted(found, key=lambda hit: (-hit[1].last(window).median, run.depth(hit[0])))

    def _at_edge(self, run: RunView, site: Site, zeros: Series, fmt: Format, window: int) -> bool:
        """Whether there are many zeros, and the other elements have hardly any bits."""
        small = self._small(run, site, fmt)
        if small is None or zeros.last(window).median < self.zeros:
            return False
        return len(small) >= window and small.last(window).median >= self.coarse

    def _small(self, run: RunView, site: Site, fmt: Format) -> Series | None:
        """The share of elements other than zero that are less than 2 ** bits of the smallest number."""
        first = round(math.log2(fmt.smallest)) + 24  # the bin that begins at the smallest number
        return share_below_bin(run, signals.GRADIENT, site, first + self.bits) if first >= 0 else None


@dataclass(frozen=True)
class RoundedUpdates:
    """Updates that disappear when they are added to a weight of 16 bits."""

    rounded: float = 0.8  # share of a 16-bit weight's elements that an update does not change
    moved: float = 0.3  # share of zeros in the gradient; more of them explain why the weight does not change
    stuck: float = 0.9  # share of the first loss; below it the few updates that are left are enough

    def find(self, run: RunView, course: float | None, window: int) -> Iterator[Update]:
        """The weights that hardly change though they have gradients; `course` is the loss over its start."""
        if course is not None and course < self.stuck:
            return
        formats = parameter_formats(run)
        for site, unchanged in run.series(signals.UPDATE.zeros) if formats else ():
            fmt = formats.get(run.key(site))
            gradient = run.of_parameter(signals.GRADIENT.zeros, run.key(site))
            if fmt is None or gradient is None or len(unchanged) < window:
                continue
            zero = gradient.last(window).median
            if unchanged.last(window).median >= self.rounded and zero <= self.moved:
                yield site, unchanged, zero, fmt


@dataclass(frozen=True)
class HalfPrecisionUnderflow(Check):
    id = "NUM003"
    name = "half-precision-underflow"
    needs = (signals.GRADIENT.zeros,)

    groups = ("layer-faults",)

    learned: float = 0.2  # share of the first loss; below it training works in spite of the format
    window: int = 5  # sampled steps in the window; fewer means no verdict
    gradients: VanishedGradients = field(default_factory=VanishedGradients)
    updates: RoundedUpdates = field(default_factory=RoundedUpdates)

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        course = progress(run)
        if course is not None and course < self.learned:
            return
        for gradient in self.gradients.find(run, self.window):
            yield self._lost_gradient(run, *gradient)
        for update in self.updates.find(run, course, self.window):
            yield self._lost_update(run, *update)

    def _lost_gradient(self, run: RunView, site: Site, zeros: Series, fmt: Format) -> Finding:
        share = zeros.last(self.window).median
        others = "the others are hardly above" if share < 1 else "all are below"
        evidence = [zeros.evidence(f"share of zeros in this gradient, {share:.0%} now")]
        largest = run.of_parameter(signals.GRADIENT.max, run.key(site))
        if largest is not None and largest.max > 0:
            headroom = Series(
                signals.GRADIENT.headroom_name,
                site,
                largest.steps,
                np.log2(np.maximum(largest.values, 1e-45)) + 24,
            )
            text = f"bits between the largest gradient and the smallest number: {headroom.median:.1f}"
            evidence.append(headroom.finite().evidence(text))
        return self.finding(
            Severity.WARNING,
            message=f"{share:.0%} of the gradients of {run.name(site)} are zero in {fmt.name}: "
            f"{others} its smallest number, {fmt.smallest:.1g}",
            fix=_scaling(run),
            site=site,
            step=zeros.onset(zeros.values >= self.gradients.zeros),
            evidence=evidence,
        )

    def _lost_update(self, run: RunView, site: Site, unchanged: Series, zero: float, fmt: Format) -> Finding:
        share = unchanged.last(self.window).median
        return self.finding(
            Severity.WARNING,
            message=f"{share:.0%} of {run.name(site)} does not change: in {fmt.name}, an update below "
            f"1/{2**fmt.precision} of a weight is rounded away",
            fix="keep the weights in float32 and compute in 16 bits: "
            f"with torch.autocast(device, dtype=torch.{fmt.name}): … instead of .{_cast(fmt)}()",
            site=site,
            step=unchanged.onset(unchanged.values >= self.updates.rounded),
            evidence=[
                unchanged.evidence(f"share of the weights that a step does not change, {share:.0%} now"),
                Evidence(f"only {zero:.0%} of their gradients are zero"),
            ],
        )

    def unjudged(self, run: RunView) -> str | None:
        lengths = [len(zeros) for _, zeros, _ in _half_gradients(run)]
        most = max(lengths, default=self.window)
        return too_few(most, self.window, "sampled steps")


def _half_gradients(run: RunView) -> Iterator[Gradient]:
    """The zeros of every gradient that was computed in 16 bits, even if it was stored in 32."""
    layers, parameters = layer_formats(run), parameter_formats(run)
    for site, zeros in run.series(signals.GRADIENT.zeros) if layers or parameters else ():
        root, module, param = run.key(site)
        fmt = parameters.get((root, module, param)) or layers.get((root, module, None))
        if fmt is not None:
            yield site, zeros, fmt


def _nothing_left(run: RunView, judged: Sequence[Gradient], window: int) -> bool:
    """Nearly every gradient of the run is zero, those of the last layer's bias included.

    Dead units or a saturated loss leave some: where nothing scales the loss, it is the format.
    """
    half = {run.key(site) for site, _, _ in judged}
    everything = {run.key(site) for site, _ in run.series(signals.GRADIENT.zeros)}
    if _scales(run) or not half or half != everything:
        return False
    return all(zeros.last(window).median == 1 for _, zeros, _ in judged)


def _scaling(run: RunView) -> str:
    if _scales(run):  # and does not reach far enough
        return "torch.autocast(device, dtype=torch.bfloat16), which needs no scaler"
    return "scaler = torch.amp.GradScaler(device); scaler.scale(loss).backward(); scaler.step(optimizer)"


def _scales(run: RunView) -> bool:
    """Whether gradients are unscaled before they are used."""
    return any("u" in fact.pattern for fact in run.known(PatternFact))


def _cast(fmt: Format) -> str:
    return "half" if fmt.name == "float16" else fmt.name
