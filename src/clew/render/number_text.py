"""Formats numbers for people."""

from __future__ import annotations

import math

from clew.records.step_costs import FlameFrame
from clew.render.size_text import short, size


def number(value: float) -> str:
    """Three digits say enough for a person."""
    if not math.isfinite(value):
        return str(value)
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e6 else f"{value:.3g}"


def duration(seconds: float) -> str:
    """`0.3 s`, `12 s`, `2 min 5 s`"""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60} s"


def span(seconds: float) -> str:
    """`12.3 ms`: three digits, in the unit that keeps them readable."""
    if not math.isfinite(seconds):
        return "?"
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if abs(seconds) >= factor:
            return f"{_three(seconds / factor)} {unit}"
    return f"{_three(seconds / 1e-9)} ns" if seconds else "0"


def share(value: float) -> str:
    """`42 %`, `0.8 %`; what is below a tenth of a percent is not told apart from it."""
    percent = 100 * value
    if not math.isfinite(percent):
        return "?"
    if 0 < percent < 0.1:
        return "<0.1 %"
    return f"{percent:.0f} %" if percent >= 9.95 or percent == 0 else f"{percent:.1f} %"


def rate(flops: float, seconds: float) -> str:
    """What was achieved: `8.1 GFLOP/s`; nothing where either is unknown."""
    return short(flops / seconds, "FLOP/s") if flops > 0 and seconds > 0 else ""


def signed_size(value: float) -> str:
    """`+3.2 MiB`"""
    return ("-" if value < 0 else "+") + size(abs(value))


def own(frame: FlameFrame) -> float:
    """A frame's value without its children's, whatever its `self` says."""
    return max(frame.value - sum(child.value for child in frame.children), 0.0)


def _three(value: float) -> str:
    digits = 0 if abs(value) >= 99.95 else 1 if abs(value) >= 9.995 else 2
    return f"{value:.{digits}f}"
