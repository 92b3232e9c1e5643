"""`clew.open_run`: a recorded run that also shows itself in a notebook."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from clew.render.verdict.notebook import loss_points
from clew.store.read.run_reader import RunReader, not_empty

if TYPE_CHECKING:
    from clew.records.verdict import Verdict
    from clew.render.run_summary import RunSummary


class Run(RunReader):
    """A recorded run; `refresh()` reads what was written since."""

    def render(self, form: str = "text") -> str:
        """The verdict as `clew why --format FORM` prints it; raises `CannotRender` for an unknown format."""
        from clew.render.renderers import rendered

        return rendered(form, *self._judged())

    def _repr_html_(self) -> str:
        from clew.render.verdict.notebook import run_html

        return run_html(*self._judged(), loss_points(self.data))

    def _judged(self) -> tuple[Verdict, RunSummary]:
        from clew.checks.run_view import RunView
        from clew.checks.runner import judge
        from clew.render.run_summary import summarise

        verdict = judge(RunView(self.data, self.ranks))
        return verdict, summarise(self, checks=verdict.asked)


def open_run(path: str | Path) -> Run:
    """Open the run in that folder, as far as it can be read; raises `RunError` with one clear line."""
    return not_empty(Run(path))
