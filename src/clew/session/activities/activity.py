"""The moments of a run at which its parts are asked to do something. Here nobody does anything."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from clew.render.stderr_messages import say, to_stderr

if TYPE_CHECKING:
    from clew.hooks.entry.guard import Guard
    from clew.hooks.seams.torch_hooks import Seams
    from clew.hooks.steps.watcher import Watcher
    from clew.records.verdict import Verdict
    from clew.session.session import Session


class Part:
    """One thing that a run does; called in this order."""

    name = ""  # under which a failure of ours is reported

    def __init__(self, session: Session) -> None:
        self._session = session

    def wire(self, watcher: Watcher, guard: Guard, seams: Seams) -> None:
        """Torch is there, and nothing is attached to it yet."""

    def attached(self, guard: Guard) -> None:
        """The seams are in."""

    def detached(self) -> None:
        """They are out, for a while or for good."""

    def script_ended(self) -> None:
        """The script has come to its end, and is still attached to."""

    def stop(self) -> None:
        """The run is over, but still attached."""

    def close(self) -> None:
        """It is detached; models and data are still there, and so is the log."""

    def report(self) -> bool:
        """Say what came out, on the first rank; True if that is all that is to be said of the run."""
        return False

    @property
    def writes_json(self) -> bool:
        """`--json` is its business."""
        return False

    @property
    def saw_nothing(self) -> bool:
        """What it is there for could not be done: that must not look like success."""
        return False

    @property
    def verdict(self) -> Verdict | None:
        """By which the exit code is chosen; None: the verdict on the whole run."""
        return None

    # -- what parts say --

    @property
    def _speaks(self) -> bool:
        """Whether anybody is to read what it says on stderr."""
        session = self._session
        return session.rank == 0 and not session.options.quiet and sys.stderr is not None

    def _say(self, line: str) -> None:
        if self._speaks:
            say(f"clew: {line}")

    def _progress(self) -> Any:
        """A line on the terminal that shows how far long work is; None where nobody watches."""
        if not self._speaks or not sys.stderr.isatty():
            return None
        from clew.render.progress_line import ProgressLine

        return ProgressLine(to_stderr())
