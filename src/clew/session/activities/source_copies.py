"""Source copies: the user's own source files, copied into the run's folder.

A finding can then be shown at its line on any machine. Only files that the recording already names are copied
if they are below the folder that the script was started in or the script's own; never those of installed
packages.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.session.activities.activity import Activity

if TYPE_CHECKING:
    from clew.store.read.run_data import Event, Fact, RunData

FILE = "source.json"
LARGEST = 400_000  # bytes of one file; a larger file is data, not a program
MOST_FILES = 64
INSTALLED = {"site-packages", "dist-packages"}


class SourceCopies(Activity):
    """Copies files each time the checks have run, in one process of the run."""

    name = "sources"
    _keeper: SourceKeeper | None = None

    def judged(self) -> None:
        """Copy the files that are named by now."""
        session = self._session
        if session.watcher is None or session.rank != 0 or not session.recording:
            return
        if self._keeper is None:
            options, folder = session.options, session.meta["cwd"]
            script = os.path.dirname(os.path.abspath(options.script))
            self._keeper = SourceKeeper(session.path, [folder] if options.module else [folder, script])
        self._keeper.keep(session.judge.data)

    def close(self) -> None:
        """Copy once more, with everything that was recorded since."""
        self.judged()


class SourceKeeper:
    """Writes `source.json`; a file that is in it stays as it was when it was first read."""

    def __init__(self, run: Path, homes: Iterable[str]) -> None:
        self._run = run
        self._homes = [os.path.realpath(home) for home in homes]
        self._kept: dict[str, str] = {}
        self._asked: set[str] = set()
        self._records = 0  # facts and events already searched: there may be thousands

    def keep(self, data: RunData) -> None:
        """Add the files that are named by now."""
        fresh = self._named(data) - self._asked
        self._asked |= fresh
        for name in sorted(fresh)[: MOST_FILES - len(self._kept)]:
            text = self._read(name)
            if text is not None:
                self._kept[name] = text
        if self._kept and fresh:
            self._write()

    def _named(self, data: RunData) -> set[str]:
        """The files that sites, and facts and events since the last call, name."""
        records: list[Fact | Event] = [*data.facts, *data.events]
        found = {site.file for site in list(data.sites.values()) if site.file}
        for record in records[self._records :]:
            found.update(_files_in(record.data))
        self._records = max(len(records) - len(data.events), 0)  # events come last: search them again
        return found

    def _read(self, name: str) -> str | None:
        path = Path(os.path.realpath(name))
        own = any(path.is_relative_to(home) for home in self._homes)
        if not own or path.suffix != ".py" or INSTALLED & set(path.parts):
            return None
        try:
            if not path.is_file() or path.stat().st_size > LARGEST:
                return None
            return path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None

    def _write(self) -> None:
        aside = self._run / f".{FILE}.{os.getpid()}"
        with contextlib.suppress(OSError):  # the log meets the same full disk or lost folder, and says so
            aside.write_text(json.dumps({"version": 1, "files": self._kept}), encoding="utf-8")
            os.replace(aside, self._run / FILE)


def _files_in(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = {v for k, v in value.items() if k in ("file", "user_file", "step_file") and isinstance(v, str)}
        return own.union(*(_files_in(v) for v in value.values() if isinstance(v, (dict, list))))
    if isinstance(value, (list, tuple)):
        return set().union(*(_files_in(v) for v in value if isinstance(v, (dict, list))))
    return set()
