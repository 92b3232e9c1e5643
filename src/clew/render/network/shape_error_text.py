"""A shape error as text: the module stack with shapes, expected against given, and possible fixes."""

from __future__ import annotations

from typing import IO

from clew.records.network import ModuleFrame, ShapeError
from clew.render.safe_text import neutral, short_path
from clew.render.screen import Screen, drawn_text

COLUMN = 10
TITLES = {
    "shape": "shapes do not match",
    "dtype": "dtypes do not match",
    "device": "tensors on different devices",
    "index": "an index is out of range",
    "other": "the forward failed",
}


def render_shape_error(found: ShapeError, *, stream: IO[str] | None = None, width: int | None = None) -> None:
    """Draw it; the exception itself takes only one line, as its traceback is elsewhere."""
    screen = Screen(stream, width)
    screen.rule()
    title = screen.text(TITLES.get(found.kind, TITLES["other"]), "bold red")
    screen.line(screen.text("clew  ", "bold"), title)
    screen.blank()
    for depth, frame in enumerate(found.frames):
        _draw_frame(screen, depth, frame, last=depth == len(found.frames) - 1)
    if found.frames:
        screen.blank()
    _row(screen, "error", found.error)
    if found.file:
        place = f"{short_path(found.file)}:{found.line}"
        _row(screen, "where", f"{place}  {found.code}" if found.code else place)
    _row(screen, "expected", found.expected)
    _row(screen, "given", found.given)
    _row(screen, "fix", found.suggestion, "bold")
    screen.rule()


def shape_error_text(found: ShapeError) -> str:
    """The explanation as it is drawn on a plain stream."""
    return drawn_text(render_shape_error, found)


def _draw_frame(screen: Screen, depth: int, frame: ModuleFrame, last: bool) -> None:
    times = screen.glyphs.times
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
