"""How findings write lists, counts and shapes."""

from __future__ import annotations

from collections.abc import Sequence


def listed(names: Sequence[str], most: int = 4) -> str:
    """`a, b, c and 9 more`"""
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most} more"


def counted(n: int, noun: str) -> str:
    """`1 layer`, `3 layers`"""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def shaped(shape: Sequence[int]) -> str:
    """`(32,)`, as Python prints a tuple"""
    return str(tuple(shape))
