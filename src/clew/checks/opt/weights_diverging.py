"""OPT012 weights-diverging

## What it detects
Weights that have grown tenfold, beyond any usual magnitude, and keep growing, while the loss does not improve
or falls below zero without bound.

## Why is this bad?
Nothing limits the weights: the steps lead away from every solution, or the loss rewards ever larger
outputs. Sooner or later numbers overflow.

## How to fix
Check the sign of the loss and whether it has a minimum at all: a critic without a constraint has none,
nor does a score that is maximised without a limit. Clip or normalise the weights
(`nn.utils.parametrizations.spectral_norm`), add weight decay, or lower the learning rate.

## Known problems
Weights that start near zero grow a lot, so their final size counts as well. The weights of a classifier
on separable data grow forever, but slowly, and its loss falls.

## References
- Arjovsky, Chintala and Bottou, Wasserstein GAN, 2017, section 3.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.gradient_depth import is_weight
from clew.checks.evidence.loss_trend import start_and_end, train_losses
from clew.checks.evidence.parameter_holders import elements
from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.checks.trainings import TRAINING
from clew.checks.wording import too_few
from clew.records import signals
from clew.records.facts.model_facts import ModelFact
from clew.records.finding import Finding, Severity


@dataclass(frozen=True)
class WeightsDiverging(Check):
    id = "OPT012"
    name = "weights-diverging"
    rank = 1210
    needs = (
        signals.WEIGHT.norm,
        signals.LOSS,
        ModelFact,
    )
    scope = TRAINING

    caused_by = ("exploding-gradient", "step-size-faults", "scale-faults")

    growth: float = 10.0  # size over that at the start; healthy weights double or triple
    size: float = 1.0  # root mean square; trained weights have 0.01 to 0.3
    still: float = 1.1  # growth over the last quarter of the steps
    samples: int = 20  # sampled steps before the check runs
    better: float = 0.9  # share of the first loss; below it, the loss is better
    depth: float = 10.0  # how far below zero a loss runs, in units of its first value, to be without bound
    faster: float = 1.5  # such a loss over that halfway through the run: it still falls

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        bad = [loss for loss in train_losses(run) if self._worse(loss) or self._unbounded(loss)]
        if not bad:
            return
        grown = [
            (self._grown(s), site, s) for site, s in run.series(signals.WEIGHT.norm) if self._diverges(run, s)
        ]
        for growth, _, series in sorted(grown, key=lambda hit: (-round(hit[0], 1), run.depth(hit[1]))):
            yield self._finding(run, series, growth, bad[0])

    def _diverges(self, run: RunView, norms: Series) -> bool:
        known = norms.finite()
        count = elements(run, norms.site)
        if len(known) < self.samples or not count or not is_weight(run, norms.site):
            return False
        late, begun = known.last(1).median, int(known.steps[0])
        # By steps: sampled ones lie close together at the start and far apart at the end.
        quarter = known.since(begun + (3 * (int(known.steps[-1]) - begun)) // 4)
        before = known.before(int(quarter.steps[0])).last(1)
        growing = late >= self.still * (before if len(before) else quarter).values[0]
        return growing and late > self.size * math.sqrt(count) and self._grown(known) >= self.growth

    def _grown(self, norms: Series) -> float:
        first = float(norms.finite().values[0])
        return norms.finite().last(3).median / first if first > 0 else 0.0

    def _worse(self, loss: Series) -> bool:
        known = loss.finite()
        start, end = start_and_end(known)
        return len(known) >= 2 * self.samples and start > 0 and end >= self.better * start

    def _unbounded(self, loss: Series) -> bool:
        known = loss.finite()
        if len(known) < 2 * self.samples:
            return False
        unit = max(abs(known.first(10).median), abs(float(known.values[0])), 1e-12)
        half, end = known.last(len(known) // 2).first(10).median, known.last(10).median
        return end < -self.depth * unit and end < self.faster * half < 0

    def _finding(self, run: RunView, norms: Series, growth: float, loss: Series) -> Finding:
        start, end = loss.finite().first(10).median, loss.finite().last(10).median
        unbounded = end < 0
        course = "falls without bound" if unbounded else "does not improve"
        return self.finding(
            Severity.WARNING,
            message=f"{run.name(norms.site)} has grown {growth:.0f}-fold and keeps growing, while the loss "
            f"{course} ({start:.3g} to {end:.3g})",
            fix="give the loss a minimum: clip the weights, p.data.clamp_(-c, c), or a gradient penalty"
            if unbounded
            else "use a tenth of the learning rate; check the sign of the loss; weight_decay=1e-4",
            site=norms.site,
            step=norms.onset(norms.values > self.growth * norms.values[0]),
            evidence=[
                norms.evidence(
                    f"norm of {run.name(norms.site)}; at the end the root mean square of its elements is "
                    f"{norms.finite().last(1).median / _root(run, norms):.2g}"
                ),
                loss.evidence("loss"),
            ],
        )

    def unjudged(self, run: RunView) -> str | None:
        return too_few(run.longest(signals.WEIGHT.norm), self.samples, "sampled steps")


def _root(run: RunView, norms: Series) -> float:
    return math.sqrt(elements(run, norms.site)) or 1.0
