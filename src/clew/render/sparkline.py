"""A series as one line of block characters."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

BLOCKS = "▁▂▃▄▅▆▇█"
PLAIN_BLOCKS = "_.:-=+*#"
NOT_FINITE = "×"
PLAIN_NOT_FINITE = "x"
LOG_FROM = 1000.0  # largest over smallest value from which a linear scale shows only the largest


def sparkline(values: Sequence[float], width: int = 32, *, plain: bool = False) -> str:
    """At most `width` characters: the extreme of each stretch, and a mark where one held NaN or infinity."""
    blocks, bad = (PLAIN_BLOCKS, PLAIN_NOT_FINITE) if plain else (BLOCKS, NOT_FINITE)
    points = _stretches(values, width)
    finite = [p for p in points if p is not None]
    if not finite:
        return bad * len(points)
    scale = _scale(finite)
    low, high = scale(min(finite)), scale(max(finite))
    return "".join(bad if p is None else blocks[_level(scale(p), low, high)] for p in points)


def is_logarithmic(values: Sequence[float]) -> bool:
    """Whether `sparkline` draws these values on a logarithmic scale."""
    finite = [v for v in values if math.isfinite(v)]
    return bool(finite) and min(finite) > 0 and max(finite) / min(finite) >= LOG_FROM


def _stretches(values: Sequence[float], width: int) -> list[float | None]:
    count = min(len(values), max(width, 1))
    edges = [i * len(values) // count for i in range(count + 1)] if count else [0]
    return [_extreme(values[a:b]) for a, b in pairwise(edges)]


def _extreme(stretch: Sequence[float]) -> float | None:
    """The value farthest from the stretch's middle, so that a spike is never drawn away."""
    if not all(math.isfinite(v) for v in stretch):
        return None
    middle = sorted(stretch)[len(stretch) // 2]
    return max(stretch, key=lambda v: abs(v - middle))


def _scale(finite: list[float]) -> Callable[[float], float]:
    return math.log if is_logarithmic(finite) else float


def _level(value: float, low: float, high: float) -> int:
    if not high > low:
        return len(BLOCKS) // 2 - 1
    share = value / 2 - low / 2  # halved: the span of two floats may overflow
    return min(int(share / (high / 2 - low / 2) * len(BLOCKS)), len(BLOCKS) - 1)
