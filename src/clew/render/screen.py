"""A stream to draw on: its width, its colours, and the characters it supports."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO
from typing import IO, TYPE_CHECKING, Any

from clew.records.finding import Severity
from clew.render.safe_text import cut, encodable

if TYPE_CHECKING:
    from rich.text import Text

WIDEST = 104  # columns: longer lines are hard to read
NARROWEST = 40


@dataclass(frozen=True)
class Glyphs:
    """The symbols of a drawing; the plain set is for streams that can't encode the others."""

    error: str = "✗"
    warning: str = "!"
    advice: str = "·"
    good: str = "✓"
    dot: str = "·"
    arrow: str = "→"
    dash: str = "–"
    rule: str = "─"
    block: str = "█"
    times: str = "×"
    plain: bool = False

    def mark(self, severity: Severity) -> str:
        return {"error": self.error, "warning": self.warning, "advice": self.advice}[severity.value]


FANCY = Glyphs()
PLAIN = Glyphs("x", "!", "-", "ok", "-", "->", "-", "-", "#", "x", plain=True)
NEEDED = "✗✓·→–─…×▁█"
STYLES = {"error": "bold red", "warning": "bold yellow", "advice": "bold blue"}


def encoding_of(stream: IO[str]) -> str:
    return getattr(stream, "encoding", None) or "utf-8"


def glyphs_for(stream: IO[str]) -> Glyphs:
    try:
        NEEDED.encode(encoding_of(stream))
    except (UnicodeEncodeError, LookupError):
        return PLAIN
    return FANCY


class Screen:
    """Lines of styled text on a stream, wrapped to its width, without colour if not wanted."""

    def __init__(self, stream: IO[str] | None = None, width: int | None = None) -> None:
        from rich.console import Console

        self.stream = stream if stream is not None else sys.stderr
        self.glyphs = glyphs_for(self.stream)
        self._console = Console(
            file=self.stream, width=width, markup=False, emoji=False, highlight=False, legacy_windows=False
        )
        self.width = max(min(self._console.width, WIDEST), NARROWEST)

    def text(self, content: str = "", style: str = "") -> Text:
        """Text that this stream can encode."""
        from rich.text import Text

        if self.glyphs.plain:
            content = encodable(content.replace("…", "..."), encoding_of(self.stream))
        return Text(content, style=style)

    def join(self, *parts: str | Text, gap: str = "") -> Text:
        """Parts side by side; plain strings get no style."""
        texts = [self.text(part) if isinstance(part, str) else part for part in parts]
        return self.text(gap).join([part for part in texts if part.plain])

    def line(self, *parts: str | Text) -> None:
        """One line, cut at the edge rather than wrapped."""
        text = self.join(*parts)
        text.truncate(self.width, overflow="crop" if self.glyphs.plain else "ellipsis")
        self._put(text)

    def rule(self) -> None:
        self.line(self.text(self.glyphs.rule * self.width, "dim"))

    def blank(self) -> None:
        self._put(self.text())

    def block(self, content: str | Text, *, indent: int = 0, label: str = "", column: int = 0) -> None:
        """Wrapped text; a label is in its own column before the first line."""
        text = self.text(content) if isinstance(content, str) else content
        room = max(self.width - indent - column, 20)
        wrapped = text.wrap(self._console, room, overflow="fold") if text.plain else [text]
        for number, line in enumerate(wrapped):
            head = self.text((label if number == 0 else "").ljust(column), "dim")
            line.rstrip()
            self._put(self.join(" " * indent, head, line))

    def row(self, content: str | Text, *, indent: int = 0, label: str = "", column: int = 0) -> None:
        """Like `block`, for text that must not change: spaces count, and nothing is wrapped."""
        head = self.text(" " * indent + label.ljust(column), "dim")
        self._put(self.join(head, self.text(content) if isinstance(content, str) else content))

    @property
    def coloured(self) -> bool:
        """Whether images can be shown in colour."""
        able = self._console.color_system in ("truecolor", "256")
        return able and self._console.is_terminal and not self._console.no_color

    def fit(self, text: str, used: int) -> str:
        """Cut to what is left of a line on which `used` columns are taken."""
        return cut(text, max(self.width - used, 12))

    def _put(self, text: Text) -> None:
        text.rstrip()
        self._console.print(text, no_wrap=True, overflow="ignore", crop=False)


def drawn_text(draw: Callable[..., None], *given: Any, **options: Any) -> str:
    """What a `render_…` function draws, as text without colours."""
    paper = StringIO()
    with rng_restored():
        draw(*given, stream=paper, **options)
    return paper.getvalue().strip("\n")


@contextmanager
def rng_restored() -> Iterator[None]:
    """Restore Python's random state after drawing: rich draws style names from it, which changes the run."""
    state = random.getstate()
    try:
        yield
    finally:
        random.setstate(state)
