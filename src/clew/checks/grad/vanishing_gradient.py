"""GRAD001 vanishing-gradient

## What it detects
Gradients that shrink from the last layers to the first by a factor of a hundred or more, step after
step. Each weight's gradient is measured relative to the weight itself, and a line is fitted through all
layers in forward order, without the output layer.

## Why is this bad?
The first layers hardly move: the network trains only its last layers, on features that are
still random. Saturating activations are the classic cause: a sigmoid passes on at most a
quarter of the gradient per layer, so that ten of them leave a millionth.

## How to fix
Use ReLU or GELU instead of sigmoid or tanh between layers, with a suitable initialisation
(`nn.init.kaiming_normal_`), normalisation layers, or residual connections.

## Known problems
Only depth is checked, not the time steps of a recurrent layer. Layers whose gradient is exactly zero
(dead, frozen or zero-initialised branches) are skipped. Deep networks can look like this for the first
few dozen steps; only the latest samples count.

## References
- Hochreiter, Untersuchungen zu dynamischen neuronalen Netzen, 1991.
- Glorot and Bengio, Understanding the difficulty of training deep feedforward networks, 2010.
- He et al., Delving deep into rectifiers, 2015.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from clew.checks.base import Check
from clew.checks.evidence.gradient_depth import ComparableLayers, DepthProfile
from clew.checks.run_view import RunView
from clew.checks.wording import too_few
from clew.records import signals
from clew.records.facts.model_facts import ModelFact
from clew.records.finding import Evidence, Finding, Severity

SQUASHING = {"sigmoid", "tanh", "hardsigmoid", "hardtanh", "softsign"}  # flat at both ends


@dataclass(frozen=True)
class VanishingGradient(Check):
    id = "GRAD001"
    name = "vanishing-gradient"
    needs = (
        signals.GRADIENT.norm,
        signals.WEIGHT.norm,
        ModelFact,
    )

    groups = ("layer-faults",)
    # A layer of dead units passes nothing on.
    caused_by = (
        "mask-inverted",
        "dead-units",
        "saturated-activation",
        "activation-scale-off",
        "half-precision-underflow",
        "poor-initialisation",
        "step-size-faults",
        "scale-faults",
        "data-faults",
    )

    # Networks that learn (deep ReLU, residual, normalised, attention, recurrent) stay within a factor
    # of ten along their depth; five sigmoid layers already give several hundred.
    decades: float = 2.0  # powers of ten by which the gradient shrinks from last to first layer
    window: int = 20  # sampled steps in the window; fewer means no verdict
    sustained: float = 0.9  # share of the window that must be bad
    layers: ComparableLayers = field(default_factory=ComparableLayers)

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        for profile in self.layers.profiles(run, lambda series: series.last(self.window)):
            if self._vanishes(profile):
                yield self._finding(run, profile)

    def _vanishes(self, profile: DepthProfile) -> bool:
        decades = profile.decades()
        enough = len(decades) >= self.sustained * self.window
        return enough and float(np.mean(decades > self.decades)) >= self.sustained

    def _finding(self, run: RunView, profile: DepthProfile) -> Finding:
        shrink = 10 ** float(np.median(profile.decades()))
        count = len(profile.sites)
        first, last = profile.sites[0], profile.sites[-2]
        return self.finding(
            Severity.WARNING,
            message=f"the gradient shrinks {shrink:,.0f}-fold on its way back through {count} layers: "
            f"{run.name(first)} hardly learns",
            fix=_fix(run),
            site=first,
            step=self._onset(run, profile),
            evidence=[
                profile.series(profile.relative[0], signals.GRADIENT.norm).evidence(
                    f"gradient relative to the weight at {run.name(first)}: {profile.typical()[0]:.2g}"
                ),
                profile.series(profile.relative[-2], signals.GRADIENT.norm).evidence(
                    f"the same at {run.name(last)}: {profile.typical()[-2]:.2g}"
                ),
                Evidence("along depth: " + " ".join(f"{v:.0e}" for v in profile.typical()[:24])),
            ],
        )

    def _onset(self, run: RunView, latest: DepthProfile) -> int:
        """The start of the run if gradients shrank from the first step on, else that of the last window."""
        for profile in self.layers.profiles(run, lambda series: series.first(self.window)):
            if profile.sites[0] == latest.sites[0] and self._vanishes(profile):
                return int(profile.steps[0])
        return int(latest.steps[0])

    def unjudged(self, run: RunView) -> str | None:
        return too_few(run.longest(signals.GRADIENT.norm), self.window, "sampled steps")


def _fix(run: RunView) -> str:
    kinds = {layer.kind.lower() for model in run.models.values() for layer in model.layers}
    squashing = (kinds | {site.op for site, _ in run.series(signals.ACTIVATION_SATURATED)}) & SQUASHING
    if squashing:
        return f"nn.ReLU() or nn.GELU() in place of {' and '.join(sorted(map(str, squashing)))}"
    return "nn.init.kaiming_normal_(layer.weight); or normalisation layers, or residual connections"
