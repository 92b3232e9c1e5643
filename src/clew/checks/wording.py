"""How checks write lists, counts, shapes, code, and what is still missing."""

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


def in_code(path: str | None, owner: str = "model") -> str:
    """A module or parameter as code reads it: `model.layers[2].weight`."""
    parts = path.split(".") if path else []
    if not all(part.isdigit() or part.isidentifier() for part in parts):
        return f"{owner}.get_submodule({path!r})"
    return owner + "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in parts)
