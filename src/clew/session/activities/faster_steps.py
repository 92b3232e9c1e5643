"""`clew profile --try` and `--batch-sizes`: tries faster steps and other batch sizes, after the run.

The first steps of the run are captured as in `clew check`. The experiments run at the end, when nothing of
Clew's is left in torch: a compiler would fail on it, and a clock would count it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.records.events import ExceptionEvent, InterruptEvent, events_of
from clew.records.facts.fact import facts_of
from clew.records.facts.profile_facts import EvaluationGraphFact
from clew.render.stderr_messages import to_stderr
from clew.session.activities.activity import Activity
from clew.session.activities.first_steps import watch_first_steps

if TYPE_CHECKING:
    from clew.hooks.entry.guard import Guard
    from clew.hooks.steps.watcher import Watcher
    from clew.labs.snapshot.subject import Subject
    from clew.records.facts.fact import TypedFact
    from clew.records.tried_changes import BatchSizes, TriedChange
    from clew.render.stderr_messages import ProgressLine
    from clew.session.run_options import ProfileOptions
    from clew.session.session import Session

BATCHES = 4  # the script's own batches: enough to see shapes change
HINT = (
    "pass the step: clew.try_faster(model, step=lambda batch: loss, batch_or_loader=loader, "
    "optimizer=optimizer)"
)


class FasterSteps(Activity):
    """Captures the first steps of a run, and runs the experiments when it is over."""

    def __init__(self, session: Session, watcher: Watcher, guard: Guard, options: ProfileOptions) -> None:
        # The compiler needs these two, and they cannot be imported once Python has begun to shut down.
        import concurrent.futures.process
        import concurrent.futures.thread  # noqa: F401

        super().__init__(session)
        self._watcher = watcher
        self._options = options
        self._capture = watch_first_steps(watcher, guard, BATCHES)
        self.attempts: list[TriedChange] = []
        self.sizes: BatchSizes | None = None

    def close(self) -> None:
        """Run all experiments that were asked for."""
        if not self._capture.began or self._ended_badly():
            return
        subject = self._capture.subject()
        for missing in ("step", "batches"):
            if missing in subject.hints:
                subject.hints[missing] = HINT
        from clew.labs.snapshot.module_state import keep_loader_generators

        try:
            with self._progress() as progress, keep_loader_generators(subject.loader):
                self._try(subject, progress)
        except KeyboardInterrupt:  # the user has seen enough; the profile still follows
            self._say("remaining tests skipped")

    def _try(self, subject: Subject, progress: ProgressLine | None) -> None:
        from clew.labs.profiler.step_experiments.batch_size_sweep import sweep
        from clew.labs.profiler.step_experiments.faster_experiments import try_faster

        options, step = self._options, max(self._watcher.step - 1, 0)
        writer = self._session.writer

        def record(fact: TypedFact) -> None:
            fact.write(writer, step)

        if options.batch_sizes:
            self.sizes = sweep(
                subject, options.batch_sizes, record, time_limit=options.try_limit, progress=progress
            )
        if options.attempts:
            self.attempts = try_faster(
                subject,
                record,
                time_limit=options.try_limit,
                progress=progress,
                evaluation=self._evaluates_with_gradients(),
            )

    def _ended_badly(self) -> bool:
        """Whether the run was stopped or failed: then the user does not want to wait now."""
        events = self._session.recorded().events
        failed = any(events_of(kind, events) for kind in (ExceptionEvent, InterruptEvent))
        if failed:
            self._say("nothing tested: the script did not finish normally")
        return failed

    def _evaluates_with_gradients(self) -> bool:
        return bool(facts_of(EvaluationGraphFact, self._session.recorded().facts))

    def report(self) -> bool:
        """Print the results on stderr."""
        if not self._session.speaks:
            return False
        from clew.render.profile.tried_changes_terminal import render_tried

        if not self._capture.began:
            self._say("nothing tested: no training step was recorded")
        render_tried(self.attempts, self.sizes, stream=to_stderr())
        return False
