"""GRAD002 exploding-gradient

## What it detects
A gradient norm that grows by orders of magnitude: a thousandfold up to the step at which values become
non-finite, or a hundredfold and sustained while the loss does not improve; or gradients that grow a
thousandfold from the last layers back to the first. The norm is that of the gradients the optimizer
uses, after any clipping.

## Why is this bad?
One step along such a gradient destroys what the weights have learned; the next gradient is even larger,
until numbers overflow.

## How to fix
Clip the gradient, `nn.utils.clip_grad_norm_(model.parameters(), 1.0)`, between `backward()` and
`step()`; lower the learning rate; check the scale of initial weights and inputs. Deep or
recurrent networks: normalisation layers, orthogonal initialisation, gated cells.

## Known problems
A loss that starts large and falls is not reported, nor is a single spike that training recovers from,
nor growth while the loss falls (a likelihood whose variance shrinks).

## References
- Pascanu, Mikolov and Bengio, On the difficulty of training recurrent neural networks, 2013.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from clew.checks.base import Check
from clew.checks.evidence.gradient_depth import ComparableLayers, DepthProfile, first_over_weight
from clew.checks.evidence.loss_trend import lead_loss
from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.checks.trainings import TRAINING
from clew.checks.wording import too_few
from clew.records import signals
from clew.records.finding import Finding, Severity

FIX = "nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # between loss.backward() and optimizer.step()"


@dataclass(frozen=True)
class NonFiniteGrowth:
    """Gradients that grow far more than usual until they are non-finite."""

    times: float = 1e3  # growth up to a NaN; gradients of one run differ by tens, hardly by a thousand

    def find(self, norms: Series, window: int) -> tuple[float, float] | None:
        """The start and the peak of norms that end before a NaN, if they grew so much."""
        start = norms.first(min(max(len(norms) // 2, 1), window)).median
        peak = norms.last(window).max
        return (start, peak) if start > 0 and peak >= self.times * start else None


@dataclass(frozen=True)
class SteepGradient:
    """Gradients that are out of scale from the first step on, and soon non-finite: there is no growth."""

    ratio: float = 1e3  # gradient over weight at the first step, before a NaN; healthy ones are around 1

    def find(self, run: RunView, norms: Series, window: int) -> float | None:
        """The first gradient over its weight, if it is so large and the norms up to a NaN are so few."""
        size = first_over_weight(run)
        return size if size >= self.ratio and 0 < len(norms) <= window else None


@dataclass(frozen=True)
class DepthGrowth:
    """Gradients that grow on their way from the last layer to the first."""

    # Batch normalisation without skip connections, which trains, gives 1.6 decades in 20 layers.
    decades: float = 3.0  # powers of ten by which the gradient grows from last to first layer
    large: float = 1.0  # gradient over weight in the first layers: a gradient as large as the weight

    def is_in(self, profile: DepthProfile, window: int, sustained: float) -> bool:
        """Whether gradients grew so much in nearly all steps of a window."""
        decades = profile.decades()
        bad = (decades < -self.decades) & (profile.relative[0] > self.large)
        return len(decades) >= sustained * window and float(np.mean(bad)) >= sustained


@dataclass(frozen=True)
class ExplodingGradient(Check):
    id = "GRAD002"
    name = "exploding-gradient"
    needs = (signals.GRAD_NORM,)
    scope = TRAINING

    groups = ("layer-faults",)
    caused_by = (
        "half-precision-overflow",
        "clip-ineffective",
        "poor-initialisation",
        "step-size-faults",
        "scale-faults",
    )

    growth: float = 100.0  # sustained growth over the first steps
    window: int = 20  # steps (of `grad.norm`), or sampled steps (along depth)
    sustained: float = 0.9  # share of the window that must be bad: a single spike does not count
    blow_up: NonFiniteGrowth = field(default_factory=NonFiniteGrowth)
    steep: SteepGradient = field(default_factory=SteepGradient)
    depth: DepthGrowth = field(default_factory=DepthGrowth)
    layers: ComparableLayers = field(default_factory=ComparableLayers)

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        over_time = [f for _, norms in run.series(signals.GRAD_NORM) if (f := self._over_time(run, norms))]
        yield from over_time
        if not over_time:
            for profile in self.layers.profiles(run, lambda series: series.last(self.window)):
                if self.depth.is_in(profile, self.window, self.sustained):
                    yield self._along_depth(run, profile)

    def _over_time(self, run: RunView, norms: Series) -> Finding | None:
        end = norms.first_nonfinite()
        if end is not None:
            return self._up_to_nonfinite(run, norms.before(end), end)
        recent, start = norms.last(self.window), norms.first(self.window).median
        if len(norms) < 2 * self.window or not start > 0:
            return None
        if recent.share_above(self.growth * start) < self.sustained or self._improves(run):
            return None
        message = (
            f"the gradient norm grew from {start:.3g} to {recent.median:.3g} and the loss does not improve"
        )
        return self._grown(Severity.WARNING, norms, start, message)

    def _up_to_nonfinite(self, run: RunView, norms: Series, end: int) -> Finding | None:
        grown = self.blow_up.find(norms, self.window)
        if grown is not None:
            start, peak = grown
            message = (
                f"the gradient norm grew from {start:.3g} to {peak:.3g}, then became non-finite (step {end})"
            )
            return self._grown(Severity.ERROR, norms, start, message)
        size = self.steep.find(run, norms, self.window)
        return None if size is None else self._at_once(norms, end, size)

    def _at_once(self, norms: Series, end: int, size: float) -> Finding:
        return self.finding(
            Severity.ERROR,
            message=f"the first gradient is {size:.3g} times the weights, and at step {end} it is non-finite",
            fix=FIX,
            site=norms.site,
            step=int(norms.steps[0]),
            evidence=norms.evidence("gradient norm, up to that step"),
        )

    def _grown(self, severity: Severity, norms: Series, start: float, message: str) -> Finding:
        over = norms.values > self.growth * start
        return self.finding(
            severity,
            message=message,
            fix=FIX,
            site=norms.site,
            step=int(norms.steps[int(np.argmax(over))]),
            evidence=norms.evidence(f"gradient norm; {start:.3g} at the start"),
        )

    def _improves(self, run: RunView) -> bool:
        """Whether the loss is lower than it was at the start."""
        loss = lead_loss(run)
        return loss is not None and loss.last(self.window).median < loss.first(self.window).median

    def _along_depth(self, run: RunView, profile: DepthProfile) -> Finding:
        grown = 10 ** -float(np.median(profile.decades()))
        first = profile.sites[0]
        return self.finding(
            Severity.WARNING,
            message=f"the gradient grows {grown:,.0f}-fold on its way through {len(profile.sites)} layers: "
            f"at {run.name(first)} it is {profile.typical()[0]:.3g} times the weight",
            fix=FIX,
            site=first,
            step=int(profile.steps[0]),
            evidence=profile.series(profile.relative[0], signals.GRADIENT.norm).evidence(
                f"gradient relative to the weight at {run.name(first)}"
            ),
        )

    def clears(self, run: RunView) -> bool:
        """If the norms stayed finite and did not grow so much."""
        return all(
            s.first_nonfinite() is None and s.max <= self.growth * s.first(self.window).median
            for _, s in run.series(signals.GRAD_NORM)
        )

    def unjudged(self, run: RunView) -> str | None:
        return too_few(run.longest(signals.GRAD_NORM), 2 * self.window, "steps")
