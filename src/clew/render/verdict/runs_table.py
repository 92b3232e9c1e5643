"""The list of runs as a table."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from clew.render.number_text import number
from clew.render.safe_text import cut, neutral
from clew.render.screen import Screen

if TYPE_CHECKING:
    from clew.store.read.run_info import RunInfo

STATE_STYLES = {"running": "cyan", "finished": "green", "failed": "red", "killed": "yellow"}
STATE_STYLES["unreadable"] = "yellow"
MOST_NOTES = 8  # damaged runs of which it is said: a list stays a list
GAP = 2


@dataclass(frozen=True)
class RunsColumn:
    """What is shown of each run; of those that don't fit the screen the last in `rank` go first."""

    title: str
    value: Callable[[RunInfo, float], str]
    rank: int
    right: bool = False
    widest: int = 40


COLUMNS = (
    RunsColumn("run", lambda run, _: run.id, 0, widest=48),
    RunsColumn("state", lambda run, _: run.state, 1),
    RunsColumn("script", lambda run, _: run.script or "", 5, widest=24),
    RunsColumn("steps", lambda run, _: "" if run.steps is None else f"{run.steps:,}", 2, right=True),
    RunsColumn("loss", lambda run, _: "" if run.last_loss is None else number(run.last_loss), 3, right=True),
    RunsColumn("took", lambda run, _: "" if run.duration is None else span(run.duration), 6, right=True),
    RunsColumn(
        "started", lambda run, now: "" if run.started is None else f"{span(now - run.started)} ago", 4
    ),
)


def render_runs(
    runs: Sequence[RunInfo], *, stream: IO[str], width: int | None = None, now: float | None = None
) -> None:
    """Newest first, as given; columns that don't fit are left out."""
    screen = Screen(stream, width)
    moment = time.time() if now is None else now
    cells = [[cut(neutral(c.value(run, moment)), c.widest) for c in COLUMNS] for run in runs]
    widths = [max(len(column.title), *(len(row[i]) for row in cells)) for i, column in enumerate(COLUMNS)]
    shown = _fitting(widths, screen.width)
    screen.line(screen.text(_row([c.title for c in COLUMNS], widths, shown), "dim"))
    for run, row in zip(runs, cells, strict=True):
        text = screen.text(_row(row, widths, shown))
        text.highlight_words([run.state], STATE_STYLES.get(run.state, ""))
        screen.line(text)
    for run in [run for run in runs if run.damage][:MOST_NOTES]:
        screen.block(screen.text(neutral(f"{run.id}: {run.damage[-1]}"), "yellow"), label="note", column=6)


def run_json(run: RunInfo) -> dict[str, Any]:
    """One run of `clew runs --json`."""
    return {
        "id": run.id,
        "path": str(run.path),
        "state": run.state,
        "started": run.started,
        "script": run.script,
        "steps": run.steps,
        "last_loss": run.last_loss,
        "duration": run.duration,
        "damage": list(run.damage),
    }


def span(seconds: float) -> str:
    """A length of time in its largest unit, as people say it."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{max(int(seconds), 0)} s"


def _fitting(widths: list[int], room: int) -> list[int]:
    shown = list(range(len(COLUMNS)))
    while len(shown) > 1 and sum(widths[i] + GAP for i in shown) - GAP > room:
        shown.remove(max(shown, key=lambda i: COLUMNS[i].rank))
    return shown


def _row(cells: list[str], widths: list[int], shown: list[int]) -> str:
    padded = [cells[i].rjust(widths[i]) if COLUMNS[i].right else cells[i].ljust(widths[i]) for i in shown]
    return (" " * GAP).join(padded)
