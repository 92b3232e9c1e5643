"""`clew profile --try` and `--batch-sizes`: tries faster steps and other batch sizes, after the run.

The first steps of the run are captured as in `clew check`. The experiments run at the end, when nothing of
Clew's is left in torch: a compiler would fail on it, and a clock would count it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clew.render.stderr_messages import to_stderr
from clew.session.activities.activity import Activity
from clew.session.activities.first_steps import keep_loader_generators, watch_first_steps

if TYPE_CHECKING:
    from clew.hooks.entry.guard import Guard
    from clew.hooks.steps.watcher import Watcher
    from clew.records.tried_changes import Attempt, BatchSizes
    from clew.session.run_options import ProfileOptions
    from clew.session.session import Session

BATCHES = 4  # the script's own batches: enough to see shapes change
HINT = (
    "pass the step: clew.try_faster(model, step=lambda batch: loss, batch_or_loader=loader, "
    "optimizer=optimizer)"
)


class AttemptRun(Activity):
    """Captures the first steps of a run, and runs the experiments when it is over."""

    def __init__(self, session: Session, watcher: Watcher, guard: Guard, options: ProfileOptions) -> None:
        # The compiler needs these two, and they cannot be imported once Python has begun to shut down.
        import concurrent.futures.process
        import concurrent.futures.thread  # noqa: F401

        super().__init__(session)
        self._watcher = watcher
        self._options = options
        self._capture = watch_first_steps(watcher, guard, BATCHES)
        self.attempts: list[Attempt] = []
        self.sizes: BatchSizes | None = None

    def close(self) -> None:
        """Run all experiments that were asked for."""
        if not self._capture.began or self._ended_badly():
            return
        subject = self._capture.subject()
        for missing in ("step", "batches"):
            if missing in subject.hints:
                subject.hints[missing] = HINT
        progress = self._progress()
        try:
            with keep_loader_generators(subject.loader):
                self._try(subject, progress)
        except KeyboardInterrupt:  # the user has seen enough; the profile still follows
            self._say("no further tests")
        finally:
            if progress is not None:
                progress.clear()

    def _try(self, subject: Any, progress: Any) -> None:
        from clew.labs.profiler.attempts.batch_size_sweep import sweep
        from clew.labs.profiler.attempts.faster_attempts import try_faster

        options, step = self._options, max(self._watcher.step - 1, 0)
        writer = self._session.writer

        def record(kind: str, data: dict[str, Any]) -> None:
            writer.fact(kind, step, data)

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
        ends = [e.kind for e in events if e.kind in ("interrupt", "exception")]
        if ends:
            self._say("nothing is tested, because the script did not end by itself")
        return bool(ends)

    def _evaluates_with_gradients(self) -> bool:
        return any(f.kind == "profile.evaluation" for f in self._session.recorded().facts)

    def report(self) -> bool:
        """Print the results on stderr."""
        if not self._speaks:
            return False
        from clew.render.profile.attempts_terminal import render_tried

        if not self._capture.began:
            self._say("nothing was tested: no training step was recorded")
        render_tried(self.attempts, self.sizes, stream=to_stderr())
        return False
