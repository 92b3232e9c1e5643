"""The documentation of checks in the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO

from clew.render.screen import Screen

INDENT = 2


@dataclass(frozen=True)
class ThresholdRow:
    """A threshold: the value in force here, and its default."""

    name: str
    value: int | float
    default: int | float
    meaning: str

    @property
    def text(self) -> str:
        """Its meaning, and whether the project has set it."""
        own = self.value != self.default
        return f"{self.meaning} (set by this project; {self.default} by default)" if own else self.meaning


@dataclass(frozen=True)
class CheckEntry:
    """What is shown of a check: its names, one sentence, and the sections of its page."""

    name: str
    id: str
    summary: str
    sections: Mapping[str, str]
    thresholds: Sequence[ThresholdRow] = ()


@dataclass(frozen=True)
class TextPiece:
    """A paragraph, a list item or a line of code."""

    text: str
    code: bool = False
    bullet: bool = False


def render_check(check: CheckEntry, *, stream: IO[str], width: int | None = None) -> None:
    """One check's page: every section of it."""
    screen = Screen(stream, width)
    screen.line(screen.text(check.name, "bold"), screen.text(f"  {check.id}", "dim"))
    for heading, body in check.sections.items():
        screen.blank()
        screen.line(screen.text(heading, "bold cyan"))
        previous: TextPiece | None = None
        for piece in pieces(body):
            if previous is not None and not (piece.code or piece.bullet or previous.bullet):
                screen.blank()
            _draw(screen, piece)
            previous = piece
    if check.thresholds:
        _draw_thresholds(screen, check)


def _draw_thresholds(screen: Screen, check: CheckEntry) -> None:
    """The thresholds of the check, and how to change them."""
    screen.blank()
    screen.line(screen.text("Thresholds", "bold cyan"))
    labels = [f"{row.name} = {row.value}" for row in check.thresholds]
    for label, row in zip(labels, check.thresholds, strict=True):
        screen.block(row.text, indent=INDENT, label=label, column=max(map(len, labels)) + 2)
    first = check.thresholds[0]
    screen.blank()
    screen.block("To set one, in pyproject.toml:", indent=INDENT)
    for line in ("[tool.clew.thresholds]", f"{check.name}.{first.name} = {first.default}"):
        _draw(screen, TextPiece(line, code=True))


def render_checks(checks: Sequence[CheckEntry], *, stream: IO[str], width: int | None = None) -> None:
    """All checks, one line each."""
    screen = Screen(stream, width)
    column = max((len(check.name) for check in checks), default=0) + 2
    for check in checks:
        screen.line(screen.text(check.name.ljust(column), "bold"), check.summary)


def _draw(screen: Screen, piece: TextPiece) -> None:
    if piece.code:
        screen.block(screen.text(piece.text, "green"), indent=2 * INDENT)
    elif piece.bullet:
        screen.block(piece.text, indent=INDENT, label="-", column=2)
    else:
        screen.block(piece.text, indent=INDENT)


def pieces(body: str) -> Iterator[TextPiece]:
    """Parse the small part of Markdown that check pages use; paragraphs become one line each."""
    fenced = False
    pending: list[str] = []
    bullet = False
    for line in [*body.split("\n"), ""]:
        fence = line.strip().startswith("```")
        starts_item = not fenced and line.lstrip().startswith(("- ", "* "))
        if pending and (fence or starts_item or not line.strip()):
            yield TextPiece(" ".join(pending), bullet=bullet)
            pending, bullet = [], False
        if fence:
            fenced = not fenced
        elif fenced:
            yield TextPiece(line, code=True)
        elif starts_item:
            bullet, pending = True, [line.strip()[2:]]
        elif line.strip():
            pending.append(line.strip())
