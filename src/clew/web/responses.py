"""What the server sends: strict JSON (only finite numbers, only valid text), and its HTML pages."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
from starlette.responses import HTMLResponse, Response

from clew.records.codec import json_float
from clew.render.html_bundle import index_file, policy
from clew.store.write.row_blocks import Array

DIGITS = 7  # significant digits sent: more than any screen shows, half the bytes of all digits


def rounded(values: Array, digits: int = DIGITS) -> list[float | None]:
    """A list of floats with this many significant digits, None for non-finite numbers."""
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
    return [(int(i), str(json_float(float(values[i])))) for i in bad]


def strict(value: Any) -> Any:
    """The same without NaN and infinities, with text as keys, and of plain types only."""
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
    except (TypeError, ValueError):  # from a run's own text: rare, so a second pass is acceptable
        return json.dumps(strict(value), allow_nan=False, separators=(",", ":"))


def reply(data: Any, status: int = 200) -> Response:
    return Response(dumps(data), status, media_type="application/json")


def problem(status: int, code: str, message: str) -> Response:
    return reply({"error": {"code": code, "message": message}}, status)


UNBUILT = "The page is not built: run <code>scripts/build-ui</code> in the source folder, then reload."
NO_TOKEN = (
    "Requests without the token are refused: open the address that <code>clew ui</code> printed, "
    "which ends in"
    " <code>?token=…</code>"
)


def index_page() -> HTMLResponse:
    """The page, with a policy that lets it load its own files and nothing else."""
    file = index_file()
    if file is None:
        return plain_page(UNBUILT, 200)
    text = file.read_text(encoding="utf-8")
    return HTMLResponse(text, headers={"Content-Security-Policy": policy(text, served=True)})


def refusal_page() -> HTMLResponse:
    return plain_page(NO_TOKEN, 401)


def plain_page(message: str, status: int) -> HTMLResponse:
    text = (
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        "<title>Clew</title><style>body{font:16px/1.5 system-ui,sans-serif;max-width:40em;margin:15vh auto;"
        "padding:0 1em;color-scheme:light dark}code{font-family:ui-monospace,monospace}</style>"
        f"<h1>Clew</h1><p>{message}</p></html>"
    )
    return HTMLResponse(text, status, headers={"Content-Security-Policy": policy(text, served=True)})
