"""A shape error as text: the module stack with shapes, expected against given, and possible fixes."""

from __future__ import annotations

from io import StringIO
from typing import IO

from clew.records.network import Mishap, ModuleFrame
from clew.render.rich_rng import undrawn
from clew.render.safe_text import neutral, short_path
from clew.render.screen import Screen

COLUMN = 10
TITLES = {
    "shape": "shapes do not match",
    "dtype": "dtypes do not match",
    "device": "tensors on different devices",
    "index": "an index is out of range",
    "other": "the forward failed",
}


def render_mishap(mishap: Mishap, *, stream: IO[str] | None = None, width: int | None = None) -> None:
    """Draw it; the exception itself is said only in one line, as its traceback is elsewhere."""
    screen = Screen(stream, width)
    screen.rule()
    title = screen.text(TITLES.get(mishap.kind, TITLES["other"]), "bold red")
    screen.line(screen.text("clew  ", "bold"), title)
    screen.blank()
    for depth, frame in enumerate(mishap.frames):
        _draw_frame(screen, depth, frame, last=depth == len(mishap.frames) - 1)
    if mishap.frames:
        screen.blank()
    _row(screen, "error", mishap.error)
    if mishap.file:
        place = f"{short_path(mishap.file)}:{mishap.line}"
        _row(screen, "where", f"{place}  {mishap.code}" if mishap.code else place)
    _row(screen, "expected", mishap.expected)
    _row(screen, "given", mishap.given)
    _row(screen, "fix", mishap.suggestion, "bold")
    screen.rule()


def mishap_text(mishap: Mishap) -> str:
    """The explanation as it is drawn on a plain stream."""
    paper = StringIO()
    with undrawn():
        render_mishap(mishap, stream=paper)
    return paper.getvalue().rstrip("\n")


def _draw_frame(screen: Screen, depth: int, frame: ModuleFrame, last: bool) -> None:
    times = "x" if screen.glyphs.plain else "×"
    label = frame.module if frame.module else "" if frame.module == "" else f"in {frame.kind}"
    detail = f"({neutral(frame.detail, 48)})" if frame.detail else ""
    kind = f"{neutral(frame.kind, 40)}{detail}" if frame.module is not None else ""
    head = "  ".join(part for part in (neutral(label or "", 60), kind) if part)
    given = ", ".join(
        f"{neutral(name, 30)} {t.text(times)}{_unusual(t.dtype)}" for name, t in frame.given[:6]
    )
    mark = f" {screen.glyphs.error}" if last else ""
    text = screen.text(f"{head}{mark}", "bold" if last else "")
    screen.block(screen.join(text, screen.text(given, "cyan"), gap="  "), indent=2 * (depth + 1))


def _unusual(dtype: str) -> str:
    return "" if dtype == "float32" else f" {dtype}"


def _row(screen: Screen, label: str, text: str | None, style: str = "") -> None:
    if text:
        screen.block(screen.text(neutral(text), style), label=label, column=COLUMN)
