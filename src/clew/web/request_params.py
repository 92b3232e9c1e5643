"""Reading the parameters of a request, each of which may be anything."""

from __future__ import annotations

import math

from starlette.requests import Request

from clew.web.answers.desk import BadRequest, Span

LONGEST = 10_000  # characters of any one parameter
FURTHEST = float(2**62)  # steps; what lies beyond is taken as this


def words(request: Request, name: str) -> str:
    value = request.query_params.get(name, "")
    if len(value) > LONGEST:
        raise BadRequest(f"{name} is too long")
    return value


def listed(request: Request, name: str) -> list[str]:
    return [part for part in words(request, name).split(",") if part]


def whole(request: Request, name: str, default: int, least: int, most: int) -> int:
    value = words(request, name)
    if not value:
        return default
    try:
        number = int(value)
    except ValueError as error:
        raise BadRequest(f"{name} must be an integer") from error
    if not least <= number <= most:
        raise BadRequest(f"{name} must be between {least} and {most}")
    return number


def rank(request: Request) -> int | None:
    return whole(request, "rank", 0, 0, 10**9) if request.query_params.get("rank") else None


def span(request: Request) -> Span:
    return _place(request, "from"), _place(request, "to")


def _place(request: Request, name: str) -> float | None:
    value = words(request, name)
    if not value:
        return None
    try:
        number = float(value)
    except ValueError as error:
        raise BadRequest(f"{name} must be a number") from error
    if not math.isfinite(number):
        raise BadRequest(f"{name} must be a finite number")
    return min(max(number, -FURTHEST), FURTHEST)
