"""Escapes text that comes from a run, so that it can't control the terminal it is shown on.

Names, messages and paths come from files that somebody else may have written. Control and
escape sequences, bidirectional overrides, invisible characters and line breaks are shown,
not obeyed; endless text is cut.
"""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path

# Other: control, format (bidirectional marks, zero-width), surrogate, private, unassigned; line separators.
_OBEYED = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_MOST_COMBINING = 3  # marks on one character: no script stacks more, "zalgo" text does
ELLIPSIS = "…"


def neutral(text: str, limit: int = 600) -> str:
    """One line, free of anything that a terminal obeys; `limit` keeps a page from flooding."""
    words = " ".join(text[: 4 * limit].split("\n"))
    return cut("".join(_visible(words)), limit)


def neutral_lines(text: str, limit: int = 40) -> list[str]:
    """Code and other text in which line breaks have a meaning."""
    lines = text.replace("\t", "    ").split("\n", limit + 1)
    return [neutral(line) for line in lines[:limit]]


def _visible(text: str) -> list[str]:
    shown: list[str] = []
    marks = 0
    for character in text:
        category = unicodedata.category(character)
        marks = marks + 1 if category == "Mn" else 0
        if category in _OBEYED:
            shown.append(character.encode("unicode_escape", "surrogatepass").decode("ascii"))
        elif category == "Zs":
            shown.append(" ")  # wide and unbreakable spaces would break the layout
        elif marks <= _MOST_COMBINING:
            shown.append(character)
    return shown


def cut(text: str, limit: int) -> str:
    """At most `limit` characters; the middle goes, as both ends of a name or path tell more."""
    if len(text) <= limit:
        return text
    tail = (limit - 1) // 2
    return text[: limit - 1 - tail] + ELLIPSIS + (text[-tail:] if tail else "")


def encodable(text: str, encoding: str) -> str:
    """What the stream can't say is written as an escape."""
    return text.encode(encoding, "backslashreplace").decode(encoding)


def short_path(path: str | os.PathLike[str]) -> str:
    """As a person in this folder would write it."""
    full = Path(os.path.abspath(path))
    for base, prefix in ((Path.cwd(), ""), (Path.home(), "~/")):
        if full.is_relative_to(base) and full != base:
            return prefix + str(full.relative_to(base))
    return str(full)
