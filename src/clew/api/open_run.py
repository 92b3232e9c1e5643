"""`clew.open_run`: a recorded run that also shows itself in a notebook."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from clew.store.read.run_reader import RunReader, not_empty

if TYPE_CHECKING:
    from clew.store.read.run_data import RunData

SHOWN = 400  # points of the loss that a small picture can show


class Run(RunReader):
    """A run folder and what has been read of it; `refresh()` reads what is new."""

    def _repr_html_(self) -> str:
        from clew.checks.run_view import RunView
        from clew.checks.runner import judge
        from clew.render.run_summary import summarise
        from clew.render.verdict.notebook import run_html

        verdict = judge(RunView(self.data, self.ranks))
        return run_html(verdict, summarise(self, checks=verdict.asked), loss_points(self.data))


def open_run(path: str | Path) -> Run:
    """The run in that folder, read as far as it goes; raises `RunError` with one clear line."""
    return not_empty(Run(path))


def loss_points(data: RunData) -> list[tuple[float, float]]:
    """The training loss, at most a few hundred points, the smallest and the largest among them."""
    from clew.checks.series import Series

    for site, steps, values in data.series("loss"):
        if site.phase != "eval" and len(values):
            kept = Series("loss", site, steps, values).evidence("", SHOWN)
            return list(zip(map(float, kept.steps), kept.values, strict=True))
    return []
