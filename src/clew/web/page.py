"""The page: the built bundle, its content security policy, and what is shown where there is none."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from pathlib import Path

from starlette.responses import HTMLResponse

STATIC = Path(__file__).parent / "static"
INLINE = {
    "script-src": re.compile(r"<script(?![^>]*\bsrc=)(?![^>]*application/json)[^>]*>(.*?)</script>", re.S),
    "style-src": re.compile(r"<style[^>]*>(.*?)</style>", re.S),
}
UNBUILT = "The page is not built: run <code>scripts/build-ui</code> in the source folder, then reload."
NO_TOKEN = (
    "Requests without the token are refused: open the address that <code>clew ui</code> printed, "
    "which ends in"
    " <code>?token=…</code>"
)


def index_file() -> Path | None:
    """The page of the bundle, if it was built."""
    file = STATIC / "index.html"
    return file if file.is_file() else None


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


def policy(text: str, *, served: bool) -> str:
    """What the page may do: run what is in it, by hash; when served, load and ask this server."""
    own = "'self'" if served else ""
    rules = {
        "default-src": "'none'",
        "script-src": " ".join([own, *hashes("script-src", text)]),
        "style-src": " ".join([own, *hashes("style-src", text)]),
        "img-src": f"{own} data: blob:",
        "font-src": f"{own} data:",
        "connect-src": own or "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    if served:
        rules["frame-ancestors"] = "'none'"  # a policy within a file can't say this
    return "; ".join(f"{name} {value.strip() or chr(39) + 'none' + chr(39)}" for name, value in rules.items())


def hashes(rule: str, text: str) -> list[str]:
    """The hashes of what is inline."""
    found = [hashlib.sha256(body.encode()).digest() for body in INLINE[rule].findall(text)]
    return [f"'sha256-{base64.b64encode(digest).decode()}'" for digest in found]


def escaped(text: str) -> str:
    return html.escape(text, quote=True)
