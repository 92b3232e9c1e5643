"""NUM002 half-precision-overflow

## What it detects
Layers that compute in 16 bits and whose values come close to the largest number of the format, or grow
so steadily that they will reach it. The limit of float16 is 65,504. The distance is given in bits of
headroom: one bit is one doubling.

## Why is this bad?
A value above the limit becomes infinite, and the loss NaN; with a `GradScaler` the step is skipped, and
at some point every step is. It happens late in a run, when the values have grown, and seems to come from
nowhere.

## How to fix
Use bfloat16, which has the range of float32: `torch.autocast(device, dtype=torch.bfloat16)`. Or keep
the values small: a normalisation before the layer, a mean where there is a sum, a division by
`math.sqrt(d)`; or compute this layer in float32, inside `torch.autocast(device, enabled=False)`.

## Known problems
Only the outputs of modules and activation functions are sampled: a product or sum between them can
overflow unnoticed (non-finite then names it). A layer whose values are large but stable is only reported
within two bits of the limit. Samples become rarer as a run continues: steady growth is assumed to have
continued since the last sample.

## References
- Micikevicius et al., Mixed precision training, 2018.
- Kalamkar et al., A study of bfloat16 for deep learning training, 2019.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from clew.checks.base import Check
from clew.checks.evidence.number_formats import Format, layer_formats
from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.checks.wording import too_few
from clew.records import signals
from clew.records.finding import Finding, Severity
from clew.records.site import Site


@dataclass(frozen=True)
class SteadyFall:
    """Headroom that falls, and by more than its values scatter about a line."""

    bits: float = 1.0  # fall of the line over the window; less may be the noise of the batches
    scatter: float = 2.0  # the same in standard deviations of the values about the line

    def is_in(self, course: OverflowCourse) -> bool:
        return course.fall > max(self.bits, self.scatter * course.scatter)


@dataclass(frozen=True)
class HalfPrecisionOverflow(Check):
    id = "NUM002"
    name = "half-precision-overflow"
    needs = (
        signals.ACTIVATION.max,
        signals.ACTIVATION.min,
    )

    caused_by = ("step-size-faults", "scale-faults")

    # A normalised layer's outputs rarely pass 100, and the outliers of large language models a few
    # thousand: 4 bits below the limit. The largest of a batch varies by a factor of two.
    near: float = 2.0  # bits of headroom; less is too little, whether or not the values still grow
    approaching: float = 4.0  # bits of headroom; less is too little if it will be used up within `horizon`
    lost: float = 3.0  # bits of headroom lost since the start that show growth
    horizon: float = 1.0  # of the length of the run so far, in which the headroom would be used up
    window: int = 10  # sampled steps in the window; fewer means no verdict
    sustained: float = 0.9  # share of the window that must have too little
    steady: SteadyFall = field(default_factory=SteadyFall)

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        found: list[tuple[float, int, Site, Series, Format, OverflowCourse | None]] = []
        for (site, series), fmt in _half_layers(run):
            if len(series) < self.window:
                continue
            course = OverflowCourse.of(series.last(self.window), run.steps - 1)
            if series.last(self.window).share_below(self.near) >= self.sustained:
                found.append((course.recent, run.depth(site), site, series, fmt, None))
            elif self._will_reach(series, course):
                found.append((course.recent, run.depth(site), site, series, fmt, course))
        for _, _, site, series, fmt, growing in sorted(found, key=lambda hit: hit[:2]):
            yield self._finding(run, site, series, fmt, growing)

    def _will_reach(self, headroom: Series, course: OverflowCourse) -> bool:
        """Whether the values have grown steadily, and would use up the headroom soon."""
        if not self.steady.is_in(course) or course.now >= self.approaching:
            return False
        if headroom.first(self.window // 2).median - course.now < self.lost:
            return False
        span = int(headroom.steps[-1] - headroom.steps[0])
        return course.now / -course.slope <= self.horizon * span

    def _finding(
        self, run: RunView, site: Site, series: Series, fmt: Format, growing: OverflowCourse | None
    ) -> Finding:
        now = series.last(self.window).median if growing is None else growing.recent  # as measured
        largest = fmt.largest / 2**now
        how = f"{now:.1f} bits below the limit of {fmt.name}, {fmt.largest:.5g}"
        began = series.first(self.window // 2).median
        grown = ""
        if growing is not None:
            grown = f", and growing: {began:.1f} bits at the start, 0 at about step {growing.ends}"
        step = series.onset(series.values < (self.approaching if growing else self.near), self.sustained)
        return self.finding(
            Severity.WARNING,
            message=f"values of {run.name(site)} reach {largest:.5g}, {how}{grown}",
            fix=_fix(fmt),
            site=site,
            step=step if step is not None else int(series.steps[-1]),
            evidence=series.evidence(f"headroom in bits: {began:.1f} at the start, {now:.1f} now"),
        )

    def unjudged(self, run: RunView) -> str | None:
        layers = [series for (_, series), _ in _half_layers(run)]
        most = max((len(series) for series in layers), default=self.window)
        return too_few(most, self.window, "sampled steps")


@dataclass(frozen=True)
class OverflowCourse:
    """A line through the last values of the headroom, extended from the last sample to the end of the run."""

    now: float  # bits, where the line is at the end of the run
    slope: float  # bits a step
    ends: int  # the step at which it meets zero
    recent: float  # the least of the last few, as it was measured
    fall: float  # bits from the first to the last of these values
    scatter: float  # bits; the standard deviation of the values about the line

    @classmethod
    def of(cls, series: Series, last_step: int) -> OverflowCourse:
        steps, values = series.steps.astype(np.float64), series.values
        span = float(steps[-1] - steps[0])
        if span <= 0:
            return cls(float(np.median(values)), 0.0, 0, float(np.min(values)), 0.0, 0.0)
        slope, level = (float(v) for v in np.polyfit(steps - steps[-1], values, 1))
        ahead = min(max(last_step - float(steps[-1]), 0.0), span)  # no further than it was seen to hold
        scatter = float(np.std(values - (level + slope * (steps - steps[-1]))))
        now = max(level + slope * ahead, 0.0)
        ends = int(steps[-1] + level / -slope) if slope < 0 else 0
        return cls(now, slope, ends, float(np.min(values[-3:])), -slope * span, scatter)


def _half_layers(run: RunView) -> Iterator[tuple[tuple[Site, Series], Format]]:
    """The headroom of every layer that computes in 16 bits."""
    formats = layer_formats(run)
    if not formats:
        return
    lows = {_key(site): series for site, series in run.series(signals.ACTIVATION.min)}
    for site, high in run.series(signals.ACTIVATION.max):
        fmt, low = formats.get(_key(site)), lows.get(_key(site))
        if fmt is None or low is None or len(low) != len(high):
            continue
        size = np.maximum(np.abs(high.values), np.abs(low.values))
        headroom = replace(
            high, signal=signals.ACTIVATION.headroom_name, values=fmt.headroom(np.maximum(size, 1e-30))
        )
        yield (site, headroom.finite()), fmt


def _key(site: Site) -> tuple[str, str, str | None]:
    return site.root or "", site.module or "", site.op


def _fix(fmt: Format) -> str:
    if fmt.name == "float16":
        return "torch.autocast(device, dtype=torch.bfloat16); or nn.LayerNorm(...) before this layer"
    return "nn.LayerNorm(...) before this layer; a lower learning rate"
