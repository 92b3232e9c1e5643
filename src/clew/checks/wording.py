"""How checks write lists, counts, shapes, and what is still missing."""

from __future__ import annotations

from collections.abc import Sequence


def listed(names: Sequence[str], most: int = 4) -> str:
    """`a, b, c and 9 more`"""
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most} more"


def too_few(found: int, needed: int, what: str) -> str | None:
    """Why a check can't judge yet: `needs 20 sampled steps, has 7`. None if there are enough."""
    return None if found >= needed else f"needs {needed} {what}, has {found}"


def shaped(shape: Sequence[int]) -> str:
    """`(32,)`, as Python prints a tuple"""
    return str(tuple(shape))
