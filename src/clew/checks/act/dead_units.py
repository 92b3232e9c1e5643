"""ACT001 dead-units

## What it detects
ReLU-like layers in which most units output zero for every sample, over a sustained window.

## Why is this bad?
A unit that never fires gets no gradient and cannot recover. The layer costs its full
compute and trains at a fraction of its width.

## How to fix
Lower the learning rate or lengthen the warm-up; check the initial weights and biases (a bias far
below zero keeps a ReLU closed); normalise the input; try LeakyReLU or GELU.

## Known problems
Layers that are sparse by design (top-k gates, expert routers) look dead: ignore the check for them. With
fewer than eight samples in a batch, a unit that happens to be silent looks the same as a dead one, so
nothing is reported.

## References
- Lu et al., Dying ReLU and initialization: theory and numerical examples, 2019.
- Maas et al., Rectifier nonlinearities improve neural network acoustic models, 2013.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.checks.wording import too_few
from clew.records import signals
from clew.records.finding import Finding, Severity
from clew.records.site import Site


@dataclass(frozen=True)
class DeadUnits(Check):
    id = "ACT001"
    name = "dead-units"
    rank = 550
    needs = (signals.ACTIVATION_DEAD_FRACTION,)

    groups = ("layer-faults",)
    # A layer that gets no gradient keeps the units that its first weights left silent.
    caused_by = (
        "poor-initialisation",
        "step-size-faults",
        "wiring-faults",
        "loss-faults",
        "scale-faults",
        "data-faults",
    )

    # Half of a ReLU layer's outputs are zero, but hardly any unit is zero for a whole batch: one that
    # fires for one sample in ten stays silent for all of 32 with a chance of 3%.
    dead_fraction: float = 0.5  # share of a layer's units silent for the whole batch
    window: int = 20  # recorded steps in the window; fewer means no verdict
    sustained: float = 0.9  # share of the window that must be bad
    batch: int = 8  # samples; in a batch of one every zero looks like a dead unit

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        if self._small_batch(run):
            return
        dead = [
            (site, series)
            for site, series in run.series(signals.ACTIVATION_DEAD_FRACTION)
            if self._dead(series)
        ]
        dead.sort(key=lambda hit: (-round(hit[1].last(self.window).median, 2), run.depth(hit[0])))
        for site, series in dead:
            yield self._finding(run, site, series)

    def _dead(self, series: Series) -> bool:
        recent = series.last(self.window)
        known = len(recent.finite()) == self.window
        return known and recent.share_above(self.dead_fraction) >= self.sustained

    def _finding(self, run: RunView, site: Site, series: Series) -> Finding:
        share = series.last(self.window).median
        return self.finding(
            Severity.WARNING,
            message=f"{share:.0%} of the units of {run.name(site)} output zero for every sample",
            fix="a lower learning rate or a longer warm-up; check the biases before it; or nn.LeakyReLU()",
            site=site,
            step=series.onset(series.values > self.dead_fraction, self.sustained),
            evidence=series.evidence(
                f"share of silent units, {share:.0%} over the last {self.window} sampled steps"
            ),
        )

    def _small_batch(self, run: RunView) -> bool:
        sizes = [s.last(self.window).median for _, s in run.series(signals.BATCH_SIZE)]
        return any(0 < size < self.batch for size in sizes)

    def unjudged(self, run: RunView) -> str | None:
        if self._small_batch(run):
            return f"with fewer than {self.batch} samples in a batch, silent and dead units look the same"
        relu_like = [
            len(s)
            for _, s in run.series(signals.ACTIVATION_DEAD_FRACTION)
            if len(s.last(self.window).finite())
        ]
        most = max(relu_like, default=self.window)  # without a ReLU-like layer there is nothing to find
        return too_few(most, self.window, "sampled steps")
