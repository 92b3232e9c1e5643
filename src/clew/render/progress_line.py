"""A one-line progress display, redrawn in place on a terminal."""

from __future__ import annotations

from time import monotonic
from typing import IO

from clew.render.safe_text import encodable

WIDTH = 24  # of the bar
PAUSE = 0.1  # seconds between two drawings


class ProgressLine:
    """Called with how many are done, of how many, which one runs and how far that is."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._next = 0.0
        self._longest = 0
        self._name = ""

    def __call__(self, number: int, count: int, name: str, done: float) -> None:
        if not count or (monotonic() < self._next and name == self._name):
            return
        self._next, self._name = monotonic() + PAUSE, name
        share = min((number + min(max(done, 0.0), 1.0)) / count, 1.0)
        filled = round(share * WIDTH)
        self._draw(f"  [{'=' * filled}{' ' * (WIDTH - filled)}] {min(number + 1, count)}/{count} {name}")

    def clear(self) -> None:
        """Leave the line empty for what follows."""
        if self._longest:
            self._draw("")
            self._write("\r")

    def _draw(self, text: str) -> None:
        self._write("\r" + text.ljust(self._longest))
        self._longest = max(self._longest, len(text))

    def _write(self, text: str) -> None:
        try:
            self._stream.write(encodable(text, getattr(self._stream, "encoding", None) or "utf-8"))
            self._stream.flush()
        except (OSError, ValueError):
            return
