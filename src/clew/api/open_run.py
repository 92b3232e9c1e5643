"""`clew.open_run`: a recorded run that also shows itself in a notebook."""

from __future__ import annotations

from pathlib import Path

from clew.render.verdict.notebook import loss_points
from clew.store.read.run_reader import RunReader, not_empty


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
    """Open the run in that folder, as far as it can be read; raises `RunError` with one clear line."""
    return not_empty(Run(path))
