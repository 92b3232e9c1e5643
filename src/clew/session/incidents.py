"""What failed inside Clew: recorded, reported once, and never the program's problem."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.records.facts.run_facts import IncidentFact
from clew.render.stderr_messages import in_short, say

if TYPE_CHECKING:
    from clew.session.session import Session


class Incidents:
    """The failures of one session. `lines` keeps what was reported, for a run that can't be written."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.lines: list[str] = []

    def failed(self, probe: str, error: BaseException) -> None:
        """A probe raised and has been switched off."""
        text = in_short(error)
        self.report(f"the {probe} probe failed and is off for this run; training continues ({text})")
        IncidentFact(probe, text).write(self._session.writer, self._session.step)

    def not_written(self, line: str) -> None:
        """The log could not be written. Without a folder to write to, the reason was reported before."""
        if self._session.recording:
            self.report(line)

    def report(self, line: str) -> None:
        """Each line once; where nothing is to be printed, the first one still is."""
        if line in self.lines:
            return
        self.lines.append(line)
        if not self._session.options.quiet or len(self.lines) == 1:
            say(f"clew: {line}")
