"""The page as the server sends it, and the replies when it is not built or the token is missing."""

from __future__ import annotations

from starlette.responses import HTMLResponse

from clew.render.bundle import index_file, policy

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
