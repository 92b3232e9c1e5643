"""Activity: the interface of everything that a run does besides recording and checking.

A session calls the hooks below in this order, and records an activity's failures under its name:

    start of torch   wire → attached
    while it trains  written (each record), judged (each time the checks have run), detached at a pause
    the end          script_ended → stop → detached → close → report → ended

An activity reads the run through its session: `recorded()` is everything recorded so far, `verdict` and
`summary()` are what is known of the run. It records with `fact.write(writer, step)`, and wraps code
that may fail in `guarded(name, action)`. To add one, subclass `Activity` and list it in `activity_list`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from clew.render.stderr_messages import ProgressLine, to_stderr

if TYPE_CHECKING:
    from clew.hooks.entry.guard import Guard
    from clew.hooks.seams.torch_hooks import Seams
    from clew.hooks.steps.watcher import Watcher
    from clew.records.verdict import Verdict
    from clew.session.session import Session


class Activity:
    """One thing that a run does. The hooks do nothing here; override those that you need."""

    name = ""  # used to report its failures

    def __init__(self, session: Session) -> None:
        self._session = session

    def wire(self, watcher: Watcher, guard: Guard, seams: Seams) -> None:
        """Torch has been imported, and nothing is attached to it yet: register with the watcher.

        Wrap what is called during training in `guard.probe` or `guard.inner`.
        """

    def attached(self, guard: Guard) -> None:
        """The seams are installed, for the first time or after a pause: install your own hooks."""

    def detached(self) -> None:
        """The seams are removed, temporarily or for good: remove your own hooks, too."""

    def judged(self) -> None:
        """The checks have run on the training so far. Called on the log's thread."""

    def written(self, payload: bytes) -> None:
        """A record has been written. Called on the log's thread for each of them: be quick."""

    def script_ended(self) -> None:
        """The script has ended, and the seams are still installed. Not called for a `with` block."""

    def stop(self) -> None:
        """The run is over, and the seams are still installed: close what is open."""

    def close(self) -> None:
        """The seams are removed; models, data and the log still exist: do the long work, write the facts."""

    def ended(self) -> None:
        """The log is closed and the run is reported: nothing more will be written."""

    def report(self) -> bool:
        """Print the result, on the first rank. Returns True if nothing else should be printed."""
        return False

    @property
    def writes_json(self) -> bool:
        """Whether the activity writes the file of `--json`."""
        return False

    @property
    def saw_nothing(self) -> bool:
        """Whether there was nothing to work on: that must not look like success."""
        return False

    @property
    def verdict(self) -> Verdict | None:
        """The verdict that decides the exit code; None for the verdict on the whole run."""
        return None

    # -- for subclasses: what they print --

    def _say(self, line: str) -> None:
        if self._session.speaks:
            self._session.say(line)

    @contextmanager
    def _progress(self) -> Iterator[ProgressLine | None]:
        """A progress line on the terminal during long work; None if nobody is watching."""
        if not self._session.speaks or not sys.stderr.isatty():
            yield None
            return
        line = ProgressLine(to_stderr())
        try:
            yield line
        finally:
            line.clear()
