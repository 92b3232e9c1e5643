"""Copies the user's own source files that the recording names into the run's folder."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from clew.session.activities.activity import Activity

if TYPE_CHECKING:
    from clew.session.source_files import SourceKeeper


class SourceCopies(Activity):
    """Runs in one process of the run; see `source_files`, which chooses the files."""

    name = "sources"
    _keeper: SourceKeeper | None = None

    def judged(self) -> None:
        """Copy the files that are named by now."""
        session = self._session
        if session.watcher is None or session.rank != 0 or not session.recording:
            return
        if self._keeper is None:
            self._keeper = self._make_keeper()
        self._keeper.keep(session.judge.data)

    def close(self) -> None:
        """Copy once more, with everything that was recorded since."""
        self.judged()

    def _make_keeper(self) -> SourceKeeper:
        from clew.session.source_files import SourceKeeper

        options, folder = self._session.options, self._session.meta["cwd"]
        script = os.path.dirname(os.path.abspath(options.script))
        return SourceKeeper(self._session.path, [folder] if options.module else [folder, script])
