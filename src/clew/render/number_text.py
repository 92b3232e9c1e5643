"""Formats numbers for people: counts, durations, shares, and sizes in bytes."""

from __future__ import annotations

import math


def number(value: float) -> str:
    """Three significant digits: enough for a person."""
    return f"{value:,.0f}" if 999.5 <= abs(value) < 1e6 else f"{value:.3g}"


def duration(seconds: float) -> str:
    """`0.3 s`, `12 s`, `2 min 5 s`"""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60} s"


def span(seconds: float) -> str:
    """`12.3 ms`: three digits, in a readable unit."""
    if not math.isfinite(seconds):
        return "?"
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if abs(seconds) >= factor:
            return f"{_three(seconds / factor)} {unit}"
    return f"{_three(seconds / 1e-9)} ns" if seconds else "0"


def share(value: float) -> str:
    """`42%`, `0.8%`; anything below a tenth of a percent looks the same."""
    percent = 100 * value
    if not math.isfinite(percent):
        return "?"
    if 0 < percent < 0.1:
        return "<0.1%"
    return f"{percent:.0f}%" if percent >= 9.95 or percent == 0 else f"{percent:.1f}%"


def rate(flops: float, seconds: float) -> str:
    """What was achieved: `8.1 GFLOP/s`; empty if either is unknown."""
    return short(flops / seconds, "FLOP/s") if flops > 0 and seconds > 0 else ""


def signed_size(value: float) -> str:
    """`+3.2 MiB`"""
    return ("-" if value < 0 else "+") + size(abs(value))


def short(value: float, unit: str = "") -> str:
    """`25.6 M`, `4.1 GFLOPs`: three digits and a prefix."""
    if value == 0:
        return f"0 {unit}".rstrip()
    for size, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{_digits(value / size)} {prefix}{unit}"
    return f"{_digits(value)} {unit}".rstrip()


def count(value: int) -> str:
    """Parameters: exact while readable, then with a scale word."""
    if value < 10_000_000:
        return f"{value:,}"
    return f"{_digits(value / 1e9)} B" if value >= 1e9 else f"{_digits(value / 1e6)} M"


def size(value: float) -> str:
    """Bytes, in powers of 1024: `48 KiB`, `1.2 GiB`."""
    for factor, unit in ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if value >= factor:
            return f"{_digits(value / factor)} {unit}"
    return f"{int(value)} B"


def _digits(value: float) -> str:
    """Three digits; a whole number has no decimals."""
    if value == int(value) and abs(value) < 1000:
        return str(int(value))
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:.{digits}f}"


def _three(value: float) -> str:
    """Three digits, with the decimals of a measurement."""
    digits = 0 if abs(value) >= 99.95 else 1 if abs(value) >= 9.995 else 2
    return f"{value:.{digits}f}"
