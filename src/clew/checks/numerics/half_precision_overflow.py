"""NUM002 half-precision-overflow

## What it detects
Layers that compute in 16 bits and whose values come near the largest number the format has, or grow
towards it so steadily that they will reach it. float16 ends at 65,504. The distance is given in
bits of headroom: one bit is one doubling.

## Why is this bad?
A value above the limit becomes infinite, the loss NaN; with a `GradScaler` the step is skipped, and
from some point on every step is. It comes late in a run, when the values have grown, and looks as if
it came from nowhere.

## How to fix
Use bfloat16, which reaches as far as float32: `torch.autocast(device, dtype=torch.bfloat16)`. Or keep
the values small: a normalisation before the layer, a mean where there is a sum, a division by
`math.sqrt(d)`; or compute this layer in float32, inside `torch.autocast(device, enabled=False)`.

## Known problems
Only what modules and activation functions put out is looked at: a product or sum between them can
overflow unseen (non-finite then names it). A layer whose values are large but do not move any more
is only reported within two bits of the limit.

## References
- Micikevicius et al., Mixed precision training, 2018.
- Kalamkar et al., A study of bfloat16 for deep learning training, 2019.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from clew.checks.api import Check
from clew.checks.numerics.formats import Format, layer_formats
from clew.checks.series import Series
from clew.checks.view import RunView
from clew.records import Finding, Severity, Site


@dataclass(frozen=True)
class HalfPrecisionOverflow(Check):
    id = "NUM002"
    name = "half-precision-overflow"
    needs = ("activation.max", "activation.min")

    # A normalised layer's outputs rarely pass 100, and the outliers of large language models a few
    # thousand: 4 bits below the limit. The largest of a batch varies by a factor of two.
    near: float = 2.0  # bits of headroom; less is too near whether or not the values still grow
    approaching: float = 4.0  # bits; less is too near if it will be gone within `horizon`
    lost: float = 3.0  # bits of headroom lost since the start that show growth
    horizon: float = 1.0  # length of the run so far, in which the rest would be used up
    window: int = 10  # sampled steps judged; fewer means no verdict
    sustained: float = 0.9  # share of the window that must be near

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        found = []
        for (site, series), fmt in _half_layers(run):
            if len(series) < self.window:
                continue
            if series.last(self.window).share_below(self.near) >= self.sustained:
                found.append((series.last(self.window).median, run.depth(site), site, series, fmt, False))
            elif self._will_reach(series):
                found.append((series.last(self.window).median, run.depth(site), site, series, fmt, True))
        for _, _, site, series, fmt, growing in sorted(found, key=lambda hit: hit[:2]):
            yield self._finding(run, site, series, fmt, growing)

    def _will_reach(self, headroom: Series) -> bool:
        """Growth so far, and a line through the later half that meets zero soon."""
        recent = headroom.last(max(self.window, len(headroom) // 2))
        now = headroom.last(self.window).median
        if now >= self.approaching or headroom.first(self.window // 2).median - now < self.lost:
            return False
        slope = float(np.polyfit(recent.steps.astype(np.float64), recent.values, 1)[0])
        span = int(headroom.steps[-1] - headroom.steps[0])
        return slope < 0 and now / -slope <= self.horizon * span

    def _finding(self, run: RunView, site: Site, series: Series, fmt: Format, growing: bool) -> Finding:
        now = series.last(self.window).median
        largest = fmt.largest / 2**now
        how = f"{now:.1f} bits below the limit of {fmt.name}, {fmt.largest:.5g}"
        began = series.first(self.window // 2).median
        grown = f", and growing: {began:.1f} bits at the start" if growing else ""
        return self.finding(
            Severity.WARNING,
            message=f"values of {run.name(site)} reach {largest:.5g}, {how}{grown}",
            fix=_fix(fmt),
            site=site,
            step=series.onset(series.values < (self.approaching if growing else self.near), self.sustained),
            evidence=series.evidence(f"headroom in bits: {began:.1f} at the start, {now:.1f} now"),
        )

    def unjudged(self, run: RunView) -> str | None:
        layers = [series for (_, series), _ in _half_layers(run)]
        most = max((len(series) for series in layers), default=self.window)
        return None if most >= self.window else f"needs {self.window} sampled steps, has {most}"


def _half_layers(run: RunView) -> Iterator[tuple[tuple[Site, Series], Format]]:
    """The headroom of every layer that computes in 16 bits."""
    formats = layer_formats(run)
    if not formats:
        return
    lows = {_key(site): series for site, series in run.series("activation.min")}
    for site, high in run.series("activation.max"):
        fmt, low = formats.get(_key(site)), lows.get(_key(site))
        if fmt is None or low is None or len(low) != len(high):
            continue
        size = np.maximum(np.abs(high.values), np.abs(low.values))
        headroom = replace(high, signal="activation.headroom", values=fmt.headroom(np.maximum(size, 1e-30)))
        yield (site, headroom.finite()), fmt


def _key(site: Site) -> tuple[str, str, str | None]:
    return site.root or "", site.module or "", site.op


def _fix(fmt: Format) -> str:
    if fmt.name == "float16":
        return "torch.autocast(device, dtype=torch.bfloat16); or nn.LayerNorm(...) before this layer"
    return "nn.LayerNorm(...) before this layer; a lower learning rate"
