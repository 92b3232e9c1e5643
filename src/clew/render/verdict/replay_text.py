"""The result of replaying a saved step, on one screen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO

from clew.render.safe_text import neutral, neutral_lines, short_path
from clew.render.screen import Screen

INDENT = 2
COLUMN = 10


@dataclass(frozen=True)
class Replayed:
    """The result of replaying a step; without a message the step was finite."""

    folder: str
    step: int
    script: str | None
    message: str | None
    place: str | None
    evidence: tuple[str, ...]
    fix: str | None
    notes: tuple[str, ...]
    uncovered: str | None = None  # why finite values are no sign that it is fixed


def render_replay(result: Replayed, *, stream: IO[str], width: int | None = None) -> None:
    """What was found, where, the evidence, and what to run next."""
    screen = Screen(stream, width)
    of = f" of {neutral(short_path(result.script))}" if result.script else ""
    if result.uncovered is not None:
        failure = f"the replay of step {result.step}{of} did not reproduce the failure"
        screen.block(screen.text(f"{screen.glyphs.warning} {failure}", "bold yellow"))
        screen.block(screen.text(neutral(result.uncovered), "bold"), indent=INDENT)
    elif result.message is None:
        good = screen.text(f"{screen.glyphs.good} step {result.step}{of} is finite now", "bold green")
        screen.block(good)
    else:
        mark = screen.text(f"{screen.glyphs.error} step {result.step}{of}", "bold red")
        screen.block(screen.join(mark, ", replayed"))
        screen.block(screen.text(neutral(result.message), "bold"), indent=INDENT)
        _draw_details(screen, result)
    for note in result.notes:
        screen.block(screen.text(neutral(note), "dim"), indent=INDENT)


def _draw_details(screen: Screen, result: Replayed) -> None:
    if result.place:
        screen.block(neutral(result.place), indent=INDENT, label="where", column=COLUMN)
    for number, text in enumerate(result.evidence):
        screen.block(neutral(text), indent=INDENT, label="" if number else "seen", column=COLUMN)
    for number, line in enumerate(neutral_lines(result.fix or "")):
        screen.block(screen.text(line, "green"), indent=INDENT, label="" if number else "fix", column=COLUMN)
    test = f"pytest {short_path(result.folder)}/test_repro.py"
    screen.block(neutral(test), indent=INDENT, label="then", column=COLUMN)
