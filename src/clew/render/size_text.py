"""Formats large numbers, bytes and counts for people."""

from __future__ import annotations

from clew.records.network import Statistics


def short(value: float, unit: str = "") -> str:
    """`25.6 M`, `4.1 GFLOPs`: three digits and a prefix."""
    if value == 0:
        return f"0 {unit}".rstrip()
    for size, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{_three(value / size)} {prefix}{unit}"
    return f"{_three(value)} {unit}".rstrip()


def count(value: int) -> str:
    """Parameters: exact while they are readable, then with a word of scale."""
    if value < 10_000_000:
        return f"{value:,}"
    return f"{_three(value / 1e9)} B" if value >= 1e9 else f"{_three(value / 1e6)} M"


def size(value: float) -> str:
    """Bytes, in powers of 1024."""
    for factor, unit in ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if value >= factor:
            return f"{_three(value / factor)} {unit}"
    return f"{int(value)} B"


def _three(value: float) -> str:
    if value == int(value) and abs(value) < 1000:
        return str(int(value))
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:.{digits}f}"


def value(number: float) -> str:
    """One number of a statistic, in at most eight characters."""
    if number != number or number in (float("inf"), float("-inf")):
        return str(number)
    return f"{number:.3g}"


def statistics(stats: Statistics | None) -> str:
    """`0.01 ±0.98, median 0, -3.1 … 3.3`, and what was not finite."""
    if stats is None:
        return ""
    bad = f", {stats.nonfinite:,} non-finite" if stats.nonfinite else ""
    middle = f"{value(stats.mean)} ±{value(stats.std)}, median {value(stats.median)}"
    return f"{middle}, {value(stats.min)} … {value(stats.max)}{bad}"
