"""`clew data` in a recorded run: watches the first steps and inspects the loaders.

It works on copies of datasets and samplers.
"""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING

from clew.records.data_report import DataOptions
from clew.records.errors import CannotRead
from clew.render.screen import rng_restored
from clew.render.stderr_messages import to_stderr
from clew.session.activities.first_steps import FirstSteps, observe, unrecorded, watch_first_steps
from clew.session.run_report import write_file

if TYPE_CHECKING:
    from clew.hooks.entry.guard import Guard
    from clew.hooks.seams.torch_hooks import Seams
    from clew.hooks.steps.watcher import Watcher
    from clew.labs.loaders.program_loaders import Collector
    from clew.labs.loaders.workerless_loader import WorkerlessLoaders
    from clew.labs.snapshot.users_step.step_capture import Capture
    from clew.records.data_report import Report
    from clew.records.verdict import Verdict
    from clew.session.session import Session


class DataInspection(FirstSteps):
    """When the data of a session is inspected, and what is reported about it."""

    name = "data"

    def __init__(self, session: Session, options: DataOptions) -> None:
        super().__init__(session)
        self.options = options
        self.goes_on = options.go_on
        self._collector: Collector | None = None
        self._capture: Capture | None = None
        self._bare: WorkerlessLoaders | None = None
        self.found: Report | None = None

    @property
    def saw_nothing(self) -> bool:
        """Whether nothing was inspected, in a run that is not bare."""
        return not self.options.bare and self.found is None

    @property
    def writes_json(self) -> bool:
        """A bare run writes JSON like any other run."""
        return not self.options.bare

    def wire(self, watcher: Watcher, guard: Guard, seams: Seams) -> None:
        """Record the creation of loaders, and sample the first steps."""
        if self.options.bare:
            from clew.labs.loaders.workerless_loader import WorkerlessLoaders

            self._bare = WorkerlessLoaders()
            self._bare.install(lambda function: guard.inner("bare", function))
            return
        from clew.labs.loaders.program_loaders import Collector

        self._watcher = watcher
        if self.options.measure:
            self._capture = watch_first_steps(watcher, guard, 2)
        self._collector = collector = Collector(watcher, seams.indices)
        collector.install(lambda function: guard.inner("loaders", function))
        observe(watcher, guard, "batches", collector)
        watcher.between_steps.append(self.between_steps)

    def _ready(self) -> bool:
        return self._collector is not None and self._collector.finished

    def _has_work(self) -> bool:
        """Even without a step, loaders may have been created."""
        return self._collector is not None and bool(self._collector.delivered or self._collector.made)

    def _work(self) -> None:
        from clew.labs.loaders.program_loaders import find_loaders, select_loaders
        from clew.labs.loaders.run import inspect_loaders

        assert self._collector is not None
        watcher, began = self._watcher, perf_counter()
        step, sink = max(watcher.step - 1, 0), watcher.sink
        try:
            loaders = select_loaders(find_loaders(watcher, self._collector), self.options.loader)
            subject = self._capture.subject() if self._capture is not None and self._capture.began else None
            with unrecorded(watcher), self._progress() as progress:
                found = inspect_loaders(
                    loaders,
                    self.options,
                    sink,
                    step,
                    subject=subject,
                    progress=progress,
                )
        except CannotRead as error:
            self._session.say(str(error))
            return
        finally:
            self._collector.release()
            if self._capture is not None:
                self._capture.release()
        self.found = replace(found, seconds=perf_counter() - began)
        self._write_run_files(self.found, step)

    def close(self) -> None:
        """Restore what was wrapped before the seams: only now is it on top again."""
        for installed in (self._collector, self._bare):
            if installed is not None:
                installed.remove()

    # -- reporting --

    def report(self) -> bool:
        """Write the files, and print the report unless it was shown before; after a bare run, the changes."""
        if self._bare is not None:
            for line in self._bare.summary():
                self._session.say(line)
        elif self.found is not None:
            self._write_files()
            if not self.goes_on:
                self.render()
        elif not self.done:
            self._say(f"no data was found: {self._why_nothing()}")
        return not (self.options.bare or self.goes_on)

    def render(self) -> None:
        """Print the report on stderr."""
        if self.found is not None and self._session.speaks:
            from clew.render.data.data_terminal import render_data

            with rng_restored():
                render_data(self._judged(), stream=to_stderr())

    def _write_files(self) -> None:
        """Write the files of `--json` and `--html`."""
        from clew.render.data.data_html import page
        from clew.render.data.data_json import report_json
        from clew.render.verdict_json import write_json

        report = self._judged()
        write_file(self._session.options.json_path, lambda p: write_json(p, report_json(report)))
        write_file(self.options.html_path, lambda p: p.write_text(page(report), encoding="utf-8"))

    def _write_run_files(self, found: Report, step: int) -> None:
        """Write what the browser's data view shows (docs/api.md)."""
        session = self._session
        if session.rank != 0 or not session.recording:
            return
        from clew.render.data.data_json import batches_json, samples_json
        from clew.render.verdict_json import write_json

        folder = session.path / "data"
        folder.mkdir(exist_ok=True)
        write_json(folder / "samples.json", samples_json(found, step))
        write_json(folder / "batches.json", batches_json(found, step))

    def _why_nothing(self) -> str:
        if self._session.watcher is None:
            return self._session.why_idle()
        return "the script ended before its first training step and created no DataLoader"

    @property
    def verdict(self) -> Verdict | None:
        """The verdict on the data alone: a few steps are not enough to judge the training."""
        return self._verdict() if self.found is not None else None

    def _verdict(self) -> Verdict:
        from clew.checks.run_view import RunView
        from clew.checks.runner import judged

        return judged(RunView(self._session.recorded()))

    def _judged(self) -> Report:
        assert self.found is not None
        return replace(self.found, verdict=self._verdict(), what=self._session.summary().script)
