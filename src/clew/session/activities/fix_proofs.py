"""`clew run --prove`, and the end of `clew check`: tries the fixes of the findings on a snapshot."""

from __future__ import annotations

from collections.abc import Collection
from time import perf_counter
from typing import TYPE_CHECKING

from clew.records.facts.run_facts import ProofTimeFact
from clew.session.activities.activity import Activity
from clew.session.activities.first_steps import watch_first_steps

if TYPE_CHECKING:
    from clew.hooks.entry.guard import Guard
    from clew.hooks.seams.torch_hooks import Seams
    from clew.hooks.steps.watcher import Watcher
    from clew.labs.snapshot.subject import Subject
    from clew.labs.snapshot.users_step.step_capture import Capture
    from clew.session.session import Session

BATCHES = 16  # the script's own batches that experiments run on
SECONDS = 60.0  # for all experiments at the end of a run


class FixProofs(Activity):
    """Captures the first steps of a run, for experiments when it is over."""

    name = "proofs"
    _capture: Capture | None = None

    def wire(self, watcher: Watcher, guard: Guard, seams: Seams) -> None:
        """Sample all of the first steps."""
        self._capture = watch_first_steps(watcher, guard, BATCHES)

    def close(self) -> None:
        """Try the fixes of the root causes that were found."""
        if self._capture is None or not self._capture.began:
            return
        subject = self._capture.subject()
        if subject.step is None:
            self._say(f"no fix could be tested: {subject.reasons.get('step', 'no step was recorded')}")
        prove_findings(self._session, subject, max(self._session.step - 1, 0), SECONDS)


def prove_findings(
    session: Session, subject: Subject, step: int, seconds: float, only: Collection[str] = ()
) -> None:
    """Try the fixes of the root causes in order, and record the results."""
    from clew.labs.experiments.fix_experiments import prove_fixes

    if subject.step is None or seconds <= 0:
        return
    names = session.verdict_so_far().root_causes
    names = [name for name in names if not only or name in only]
    began = perf_counter()
    prove_fixes(names, subject, session.writer, step, seconds)
    if names:
        ProofTimeFact(round(perf_counter() - began, 3)).write(session.writer, step)
