"""Numbers as a person reads them."""

from __future__ import annotations

import math


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
