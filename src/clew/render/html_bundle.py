"""Bundles the built browser page into one file, with style, code and data inlined: it needs no network.

`clew report`, `clew show --graph net.html` and `clew profile --format html` write such files.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from pathlib import Path
from typing import Literal, TypedDict

STATIC = Path(__file__).parent.parent / "web" / "static"
NOT_BUILT = "the page is not built: run scripts/build-ui in the source folder"
INLINE = {
    "script-src": re.compile(r"<script(?![^>]*\bsrc=)(?![^>]*application/json)[^>]*>(.*?)</script>", re.S),
    "style-src": re.compile(r"<style[^>]*>(.*?)</style>", re.S),
}
STYLE = re.compile(r'<link rel="stylesheet" href="static/([\w.-]+)"\s*/?>')
SCRIPT = re.compile(r'<script src="static/([\w.-]+)"></script>')
DATA = "\0data\0"  # where the data goes, right before the code that reads it


class _PageInfo(TypedDict):
    shows: Literal["flames", "graph"]
    title: str
    about: str


class PageInfo(_PageInfo, total=False):
    """The head of a file that shows one thing, a graph or flames, and no runs."""

    colour: str  # of the boxes of a graph, at first


class BundleNotBuilt(Exception):  # noqa: N818 - says what the matter is
    """There is no built page to put data into; the message is one clear line."""


def index_file() -> Path | None:
    """The page of the bundle, if it was built."""
    file = STATIC / "index.html"
    return file if file.is_file() else None


def bundled_page(data: str, title: str) -> str:
    """The whole page with this JSON in it, as one file. Raises `BundleNotBuilt`."""
    return assemble(page_with_code(), data, title)


def page_with_code() -> str:
    """The page with style and code inlined, and a mark where the data goes. Raises `BundleNotBuilt`."""
    file = index_file()
    if file is None:
        raise BundleNotBuilt(NOT_BUILT)
    text = file.read_text(encoding="utf-8")
    text = STYLE.sub(lambda found: f"<style>{_part(found[1]).replace('</style', '')}</style>", text)
    return SCRIPT.sub(lambda found: f"{DATA}<script>{_code(_part(found[1]))}</script>", text)


def _part(name: str) -> str:
    return (STATIC / name).read_text(encoding="utf-8")


def _code(script: str) -> str:
    """Nothing in a script may look like its end tag or an HTML comment."""
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def assemble(page: str, data: str, title: str) -> str:
    """Data as JSON that can't end its element; the policy allows only what is in the file, by hash."""
    inert = data.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    page = page.replace(DATA, f'<script type="application/json" id="clew-data">{inert}</script>\n', 1)
    page = re.sub(r"<title>.*?</title>", lambda _: f"<title>{html.escape(title)}</title>", page, count=1)
    rule = f'<meta http-equiv="Content-Security-Policy" content="{html.escape(policy(page, served=False))}">'
    return page.replace('<meta charset="utf-8">', f'<meta charset="utf-8">\n{rule}', 1)


def policy(text: str, *, served: bool) -> str:
    """What the page may do: run its inline code, by hash; when served, load from and query this server."""
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
        rules["frame-ancestors"] = "'none'"  # a policy inside a file can't set this
    return "; ".join(f"{name} {value.strip() or chr(39) + 'none' + chr(39)}" for name, value in rules.items())


def hashes(rule: str, text: str) -> list[str]:
    """The hashes of the inline parts."""
    found = [hashlib.sha256(body.encode()).digest() for body in INLINE[rule].findall(text)]
    return [f"'sha256-{base64.b64encode(digest).decode()}'" for digest in found]
