"""SYM004 loss-spikes

## What it detects
Training losses that repeatedly jump to several times the surrounding values, far beyond their noise.

## Why is this bad?
Each jump is a step along a gradient that has little to do with the task: a broken sample, an unusual
batch, or a learning rate at its limit. It partly undoes what was learned before.

## How to fix
Check the batches of those steps: a missing value coded as -999, an empty or wrongly scaled sample, a
wrong label. If they are fine, clip the gradient, `nn.utils.clip_grad_norm_`, or lower the learning rate.

## Known problems
A symptom: it is reported on its own only where no cause was found. Losses of batches with fewer than
eight samples always jump, as do several losses and losses that become negative; they are not checked.

## References
- Chowdhery et al., PaLM, 2022, section 5.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from clew.checks.base import Check
from clew.checks.evidence.loss_trend import noise, only_loss, searches_lines
from clew.checks.run_view import RunView
from clew.checks.series import FloatArray, IntArray, Series
from clew.checks.trainings import TRAINING
from clew.checks.wording import listed, too_few
from clew.records import signals
from clew.records.finding import Evidence, Finding, Severity


@dataclass(frozen=True)
class LossJump:
    """What counts as a jump of the loss: far above its neighbourhood, and beyond its noise."""

    times: float = 3.0  # loss over the median of its neighbourhood
    beyond: float = 10.0  # the jump in standard deviations of the noise; chance gives four
    start: float = 0.5  # share of the first losses that a spike must reach; single hard samples stay below
    around: int = 10  # losses on each side that are the neighbourhood

    def find(self, loss: Series) -> list[int]:
        """The positions of the jumps in the series; of several in a row, the first."""
        values, around = loss.values, self.around
        floor = self.start * loss.first(around).median
        at = np.flatnonzero(values > floor)  # none of the others can be a spike
        level = np.full(len(values), np.inf)
        level[at] = _medians_around(values, at, around)
        least = np.maximum(self.times * level, floor)
        high = (values > least) & (values - level > self.beyond * noise(values))
        high[:around] = False  # the first steps fall steeply
        return [int(n) for n in np.flatnonzero(high) if not high[n - 1]]


@dataclass(frozen=True)
class LossSpikes(Check):
    id = "SYM004"
    name = "loss-spikes"
    rank = 1150
    needs = (signals.LOSS,)
    scope = TRAINING
    symptom = True
    confidence = "possible"

    caused_by = (
        "exploding-gradient",
        "unshuffled-data",
        "single-label-batches",
        "step-size-faults",
        "scale-faults",
    )

    count: int = 3  # spikes; one or two may be chance
    rare: float = 0.1  # share of the losses that may be spikes; more of them are noise
    patience: int = 60  # losses before the check runs
    batch: int = 8  # samples; with fewer, a single odd sample causes a jump
    jump: LossJump = field(default_factory=LossJump)

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        loss = only_loss(run)
        if loss is None or len(loss) < self.patience or self._small_batch(run) or searches_lines(run):
            return
        spikes = self.jump.find(loss)
        if self.count <= len(spikes) <= self.rare * len(loss):
            yield self._finding(loss, spikes)

    def _finding(self, loss: Series, spikes: list[int]) -> Finding:
        steps = [int(loss.steps[n]) for n in spikes]
        worst = max(spikes, key=lambda n: float(loss.values[n]))
        usual = _median_around(loss.values, worst, self.jump.around)
        return self.finding(
            Severity.ADVICE,
            message=f"the loss jumps {len(spikes)} times, at step {steps[spikes.index(worst)]} from about "
            f"{usual:.3g} to {loss.values[worst]:.3g}",
            fix="check the batches of those steps for broken samples; nn.utils.clip_grad_norm_(…, 1.0) "
            "limits the harm",
            site=loss.site,
            step=steps[0],
            evidence=[
                loss.evidence("loss"),
                Evidence(f"jumps at steps {listed([str(s) for s in steps], 12)}"),
            ],
        )

    def _small_batch(self, run: RunView) -> bool:
        sizes = [s.median for _, s in run.series(signals.BATCH_SIZE)]
        return any(0 < size < self.batch for size in sizes)

    def unjudged(self, run: RunView) -> str | None:
        if self._small_batch(run):
            return f"with fewer than {self.batch} samples in a batch, the loss always jumps"
        return too_few(run.longest(signals.LOSS, "train"), self.patience, "steps")


def _medians_around(values: FloatArray, at: IntArray, around: int) -> FloatArray:
    """The same as `_median_around` for each position, but fast: a run may have millions of steps."""
    inner = (at >= around) & (at < len(values) - around)
    found = np.empty(len(at))
    found[~inner] = [_median_around(values, int(n), around) for n in at[~inner]]
    near = np.r_[-around:0, 1 : around + 1]
    places = np.flatnonzero(inner)
    for part in np.array_split(places, max(1, len(places) // 10_000)):
        found[part] = np.median(values[at[part][:, None] + near], axis=1)
    return found


def _median_around(values: FloatArray, n: int, around: int) -> float:
    near = np.concatenate([values[max(n - around, 0) : n], values[n + 1 : n + 1 + around]])
    return float(np.median(near)) if len(near) else float("nan")
