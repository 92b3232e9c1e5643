"""Reads recorded data defensively: a field may be missing or of another type.

A run may come from another version of Clew, or from a damaged disk, so nothing here raises.
Kinds of facts with a dataclass (`records/facts/`) are read whole, by `RunView.known`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Data = Mapping[str, Any]
Shape = tuple[int, ...]


def text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def flag(value: object) -> bool:
    return value is True


def shape(value: object) -> Shape | None:
    if isinstance(value, (list, tuple)) and all(whole(v) is not None and v >= 0 for v in value):
        return tuple(value)
    return None


def rows(value: object) -> list[Data]:
    return [row for row in value if isinstance(row, dict)] if isinstance(value, (list, tuple)) else []


def names(value: object) -> tuple[str, ...]:
    return tuple(v for v in value if isinstance(v, str)) if isinstance(value, (list, tuple)) else ()
