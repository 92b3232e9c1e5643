"""JSON answers, and errors in one shape."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from clew.web.strict_json import dumps


def reply(data: Any, status: int = 200) -> Response:
    return Response(dumps(data), status, media_type="application/json")


def problem(status: int, code: str, message: str) -> Response:
    return reply({"error": {"code": code, "message": message}}, status)
