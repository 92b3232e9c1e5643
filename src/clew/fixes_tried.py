"""`clew run --prove`, and the end of `clew check`: the fixes of what was found are tried on a snapshot."""

from __future__ import annotations

from collections.abc import Collection
from time import perf_counter
from typing import TYPE_CHECKING

from clew.live import say
from clew.records import Severity

if TYPE_CHECKING:
    from clew.attach.guard import Guard
    from clew.attach.watcher import Watcher
    from clew.experiments.subject import Subject
    from clew.session import Session

BATCHES = 16  # of the script's own that trials run on
SECONDS = 60.0  # for all trials at the end of a run


class ProofRun:
    """Captures the first steps of a run, for trials when it is over."""

    def __init__(self, session: Session, watcher: Watcher, guard: Guard) -> None:
        from clew.preflighting import watch_first_steps

        self._session = session
        self._watcher = watcher
        self._capture = watch_first_steps(watcher, guard, BATCHES)

    def conduct(self) -> None:
        """The run is over and detached: models and data are still there."""
        if not self._capture.began:
            return
        subject = self._capture.subject()
        if subject.step is None and not self._session.options.quiet:
            say(f"clew: no fix could be tried: {subject.reasons.get('step', 'no step was seen')}")
        prove_findings(self._session, subject, max(self._watcher.step - 1, 0), SECONDS)


def prove_findings(
    session: Session, subject: Subject, step: int, seconds: float, only: Collection[str] = ()
) -> None:
    """Try the fixes of the root causes, the first one first, and record what came out."""
    from clew.experiments.trials import try_fixes

    if subject.step is None or seconds <= 0:
        return
    session._writer.flush()
    verdict = session._judge.verdict()
    roots = [f for f in verdict.findings if not f.because and f.severity is not Severity.ADVICE]
    names = [f.check for f in roots if not only or f.check in only]
    began = perf_counter()
    try_fixes(names, subject, session._writer, step, seconds)
    if names:
        session._writer.fact("trials", step, {"seconds": round(perf_counter() - began, 3)})
