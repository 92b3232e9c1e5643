"""Strict JSON: only finite numbers, and only valid text."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
from starlette.responses import Response

from clew.store.write.row_blocks import Array

DIGITS = 7  # significant ones sent: more than any screen shows, half the bytes of all


def rounded(values: Array, digits: int = DIGITS) -> list[float | None]:
    """A list of floats with so many significant digits, None where there is no finite number."""
    floats = np.asarray(values, np.float64)
    finite = np.isfinite(floats)
    clean = np.where(finite, floats, 0.0)
    with np.errstate(all="ignore"):
        exponent = np.floor(np.log10(np.where(clean == 0, 1.0, np.abs(clean))))
        scale = 10.0 ** (digits - 1 - exponent)
        short = np.round(clean * scale) / scale
    short = np.where(np.isfinite(short), short, clean)  # scales of denormal numbers overflow
    if finite.all():
        return short.tolist()  # type: ignore[no-any-return]
    return [value if ok else None for value, ok in zip(short.tolist(), finite.tolist(), strict=True)]


def marks(values: Array) -> list[tuple[int, str]]:
    """Where a value is not finite, and what it is instead."""
    bad = np.flatnonzero(~np.isfinite(values))
    return [(int(i), _word(float(values[i]))) for i in bad]


def _word(value: float) -> str:
    if value != value:
        return "nan"
    return "inf" if value > 0 else "-inf"


def strict(value: Any) -> Any:
    """The same without NaN and infinities, with text for keys, and of plain types only."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): strict(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [strict(item) for item in value]
    return value if value is None or isinstance(value, (str, int)) else str(value)


def dumps(value: Any) -> str:
    """Strict JSON in ASCII, so that no encoding and no lone surrogate can break it."""
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError):  # from a run's own text: rare, and then worth a second pass
        return json.dumps(strict(value), allow_nan=False, separators=(",", ":"))


def reply(data: Any, status: int = 200) -> Response:
    return Response(dumps(data), status, media_type="application/json")


def problem(status: int, code: str, message: str) -> Response:
    return reply({"error": {"code": code, "message": message}}, status)
