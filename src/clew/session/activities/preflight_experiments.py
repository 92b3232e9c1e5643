"""`clew check` in a recorded run: captures the first steps and runs the preflight experiments."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from clew.render.screen import rng_restored
from clew.render.stderr_messages import to_stderr
from clew.session.activities.first_steps import (
    FirstSteps,
    unrecorded,
    watch_first_steps,
)
from clew.session.activities.fix_proofs import prove_findings
from clew.session.run_options import CheckOptions
from clew.session.run_report import write_file

if TYPE_CHECKING:
    from clew.hooks.entry.guard import Guard
    from clew.hooks.seams.torch_hooks import Seams
    from clew.hooks.steps.watcher import Watcher
    from clew.labs.snapshot.users_step.step_capture import Capture
    from clew.render.verdict.preflight_results import Preflight
    from clew.session.session import Session

OTHERS_TRAIN = 2.0  # seconds of processor time in child processes that look like training


class PreflightExperiments(FirstSteps):
    """When the experiments of a session run, and what is reported about them."""

    name = "experiments"
    writes_json = True

    def __init__(self, session: Session, options: CheckOptions) -> None:
        super().__init__(session)
        self.options = options
        self.goes_on = options.go_on
        self._capture: Capture | None = None

    def wire(self, watcher: Watcher, guard: Guard, seams: Seams) -> None:
        """Sample all of the first steps."""
        self._watcher = watcher
        self._capture = watch_first_steps(watcher, guard, self.options.batches)
        watcher.between_steps.append(self.between_steps)

    def _ready(self) -> bool:
        return self._capture is not None and self._capture.finished

    def _has_work(self) -> bool:
        return self._capture is not None and self._capture.began

    @property
    def saw_nothing(self) -> bool:
        """A script that was not examined must not look healthy."""
        return not self.done

    def _work(self) -> None:
        from clew.labs.experiments.fix_experiments import PROOFS
        from clew.labs.experiments.run import chosen, run_experiments
        from clew.labs.snapshot.module_state import keep_loader_generators

        assert self._capture is not None
        watcher, began = self._watcher, perf_counter()
        step = max(watcher.step - 1, 0)
        subject = self._capture.subject()
        with unrecorded(watcher), self._progress() as progress, keep_loader_generators(subject.loader):
            run_experiments(
                subject,
                chosen(self.options.only, self.options.skip),
                watcher.sink,
                step,
                time_limit=self.options.time_limit * (1 - PROOFS),
                progress=progress,
            )
            left = self.options.time_limit - (perf_counter() - began)
            prove_findings(self._session, subject, step, left, self.options.only)

    # -- reporting --

    def report(self) -> bool:
        """Write the files, and print the table unless it was already shown after the experiments."""
        if not self.done:
            self._say(f"nothing was checked: {self._why_nothing()}")
            return not self.goes_on
        self._write_files()
        if not self.goes_on:
            self.render()
        return not self.goes_on

    def render(self) -> None:
        """Print the table and the verdict on stderr."""
        if not self._session.speaks:
            return
        from clew.render.verdict.preflight_terminal import render_preflight

        with rng_restored():
            render_preflight(self._read(), self._session.summary(), stream=to_stderr())

    def _write_files(self) -> None:
        """Write the files of `--json`, `--junit` and `--html`."""
        from clew.render.verdict.preflight_html import page
        from clew.render.verdict.preflight_results import junit, preflight_json
        from clew.render.verdict_json import write_json

        found, summary = self._read(), self._session.summary()
        json_path = self._session.options.json_path
        write_file(json_path, lambda p: write_json(p, preflight_json(found, summary)))
        write_file(self.options.junit_path, lambda p: p.write_text(junit(found), encoding="utf-8"))
        write_file(self.options.html_path, lambda p: p.write_text(page(found, summary), encoding="utf-8"))

    def _read(self) -> Preflight:
        from clew.checks.run_view import RunView
        from clew.render.verdict.preflight_results import Preflight

        session = self._session
        return Preflight.read(RunView(session.recorded()), session.verdict, session.summary().script)

    def _why_nothing(self) -> str:
        if self._session.watcher is None:
            return self._session.why_idle()
        if _children_worked():
            return (
                "no training step ran in this process, but it started other processes; "
                "run clew check on the script that trains"
            )
        return "the script ended before its first training step, or does not train with torch"


def _children_worked() -> bool:
    try:
        import resource
    except ImportError:
        return False
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime > OTHERS_TRAIN
