"""A loader's failure, printed after the traceback: the sample, the stage and the user's lines."""

from __future__ import annotations

from typing import IO

from clew.records.sample_views import Failure
from clew.render.data.data_terminal import value_rows
from clew.render.data.field_text import briefly
from clew.render.safe_text import neutral, short_path
from clew.render.screen import Screen

COLUMN = 9
WIDE = 20
MOST_INDICES = 12
TITLES = {
    "sample": "a sample could not be read",
    "collate": "samples could not be collated into a batch",
    "killed": "a loader's worker died",
    "unpicklable": "a dataset can't be pickled for its workers",
    "not reproduced": "a loader's worker failed",
}


def render_failure(
    failure: Failure, script: str = "train.py", *, stream: IO[str] | None = None, width: int | None = None
) -> None:
    """Draw it; the exception itself takes only one line, as its traceback is above."""
    screen = Screen(stream, width)
    screen.rule()
    title = screen.text(TITLES.get(failure.kind, "a loader failed"), "bold red")
    screen.line(screen.text("clew  ", "bold"), title)
    _row(screen, "error", failure.error)
    _row(screen, "sample", _sample(failure), "bold")
    _row(screen, "stage", failure.stage)
    for n, frame in enumerate(failure.frames[-3:]):
        place = f"{short_path(frame.file)}:{frame.line}"
        _row(screen, "" if n else "where", f"{place}  {frame.code}" if frame.code else place)
    for n, detail in enumerate(failure.details):
        _row(screen, "" if n else "given", detail)
    _draw_value(screen, failure)
    for n, note in enumerate(failure.notes):
        _row(screen, "" if n else "note", note)
    _row(screen, "fix", failure.hint, "green")
    if failure.kind in ("sample", "collate") and failure.worker is not None:
        bare = f"clew data --bare {neutral(script, 80)} runs it without workers, so that a debugger works"
        _row(screen, "next", bare, "dim")
    screen.rule()


def _sample(failure: Failure) -> str:
    of = f" of {failure.loader}" if failure.loader else ""
    if failure.index is not None:
        worker = f", in worker {failure.worker}" if failure.worker is not None else ""
        return f"index {failure.index}{of}{worker}"
    if not failure.indices:
        return ""
    some = ", ".join(str(index) for index in failure.indices[:MOST_INDICES])
    more = " …" if len(failure.indices) > MOST_INDICES else ""
    return f"one of the samples {some}{more}{of}"


def _draw_value(screen: Screen, failure: Failure) -> None:
    view = failure.view
    if view is None:
        return
    _row(screen, "given", ", ".join(briefly(part) for part in view.parts[:3]))
    if view.data and not (view.kind == "text" and len(view.parts) == 1 and view.parts[0].text):
        for row in value_rows(screen, view, screen.width - COLUMN, WIDE):
            screen.row(row, label="", column=COLUMN)


def _row(screen: Screen, label: str, text: str, style: str = "") -> None:
    if text:
        screen.block(screen.text(neutral(text), style), label=label, column=COLUMN)
