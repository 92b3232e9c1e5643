"""Values of JSON that may come from another version of Clew or a damaged disk: what does not fit is left out.

Facts are read by their dataclasses (`facts/`, `codec`); this is for what has none.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any


def text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def shape(value: object) -> tuple[int, ...] | None:
    if isinstance(value, (list, tuple)) and all(whole(v) is not None and v >= 0 for v in value):
        return tuple(value)
    return None


def rows(value: object) -> list[Mapping[str, Any]]:
    return [row for row in value if isinstance(row, dict)] if isinstance(value, (list, tuple)) else []


def names(value: object) -> tuple[str, ...]:
    return tuple(v for v in value if isinstance(v, str)) if isinstance(value, (list, tuple)) else ()


def numbers(value: object) -> tuple[float, ...]:
    """NaN and infinity are words in JSON; what is no number is NaN."""
    if not isinstance(value, Iterable) or isinstance(value, (str, bytes)):
        return ()
    return tuple(_number(one) for one in value)


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan
