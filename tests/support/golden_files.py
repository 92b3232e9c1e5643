"""Compares output with the file that is named after its test. CLEW_UPDATE_GOLDENS=1 rewrites the file."""

from __future__ import annotations

import io
import os
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "render" / "goldens"


class Paper(io.StringIO):
    """A stream of a given encoding that is not a terminal, or says that it is one."""

    def __init__(self, encoding: str = "utf-8", terminal: bool = False) -> None:
        super().__init__()
        self._encoding, self._terminal = encoding, terminal

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding

    def isatty(self) -> bool:
        return self._terminal

    def write(self, text: str) -> int:
        text.encode(self._encoding)  # a real stream would fail on what it can't encode
        return super().write(text)


def assert_golden(name: str, drawn: str) -> None:
    path = FOLDER / f"{name}.txt"
    if os.environ.get("CLEW_UPDATE_GOLDENS") == "1":
        path.write_text(drawn, encoding="utf-8")
    assert path.exists(), f"no golden {path.name}: look at the drawing, then set CLEW_UPDATE_GOLDENS=1"
    assert drawn == path.read_text(encoding="utf-8")
