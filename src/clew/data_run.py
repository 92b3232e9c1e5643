"""`clew data` in a recorded run: the first steps are watched, the pipelines looked at, and the script ended.

The looking is done between two steps, with the seams looking away, on copies of datasets and samplers:
with `--continue` the script trains on as if nothing had been.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from clew.live import RunStopped, say
from clew.options import DataOptions
from clew.preflighting import watch_first_steps

if TYPE_CHECKING:
    from clew.attach.guard import Guard
    from clew.attach.seams import Seams
    from clew.attach.watcher import Watcher
    from clew.data_report import DataReport
    from clew.experiments.capturing import Capture
    from clew.pipeline.bare import Bare
    from clew.pipeline.finding import Collector
    from clew.records import Verdict
    from clew.session import Session

_EVENTS = ("forward", "loss", "backward")


class DataRun:
    """The data part of one session: when it is done, and what is said about it."""

    NOTHING_SEEN = 2  # exit code: a script without data must not look examined

    def __init__(self, session: Session, options: DataOptions) -> None:
        self._session = session
        self.options = options
        self._watcher: Watcher | None = None
        self._collector: Collector | None = None
        self._capture: Capture | None = None
        self._bare: Bare | None = None
        self.report: DataReport | None = None
        self.done = False

    @property
    def saw_nothing(self) -> bool:
        """Neither run bare, which is all that was asked for, nor looked at."""
        return not self.options.bare and self.report is None

    @property
    def trains_on(self) -> bool:
        """Whether what follows is a run as any other, to be judged as such."""
        return self.options.bare or self.options.go_on

    def wire(self, watcher: Watcher, guard: Guard, seams: Seams) -> None:
        """Torch is there: see loaders being made, and look at the first steps."""
        if self.options.bare:
            from clew.pipeline.bare import Bare

            self._bare = Bare()
            self._bare.install(lambda function: guard.inner("bare", function))
            return
        from clew.pipeline.finding import Collector

        self._watcher = watcher
        if self.options.measure:
            self._capture = watch_first_steps(watcher, guard, 2)
        self._collector = collector = Collector(watcher, seams.indices)
        collector.install(lambda function: guard.inner("loaders", function))
        safely = {name: guard.inner("batches", getattr(collector, name)) for name in _EVENTS}
        watcher.observers.append(SimpleNamespace(**safely))
        watcher.between_steps.append(self.between_steps)

    def between_steps(self, step: int) -> None:
        """On the training thread, after an update."""
        if self._collector is None or not (self._collector.finished or self.done):
            return
        if not self.done:
            self.conduct()
            if self.options.go_on:
                self._session._guarded("report", self.render)
            elif not self._session.options.quiet:
                steps = "1 step" if step == 1 else f"{step} steps"
                say(f"clew: the script was ended after {steps}; --continue would let it train on")
        if not self.options.go_on:
            raise RunStopped(0)

    def script_ended(self) -> None:
        """Fewer steps than were waited for, or none at all: loaders may have been made all the same."""
        seen = self._collector is not None and (self._collector.delivered or self._collector.made)
        if seen and not self.done:
            self.conduct()
            if self.options.go_on:
                self._session._guarded("report", self.render)

    def conduct(self) -> None:
        """Once; a failure of our own is an incident of the run."""
        self.done = True
        self._session._guarded("data", self._conduct)

    def _conduct(self) -> None:
        from clew.data_report import conduct
        from clew.pipeline.finding import NoSuchLoader, chosen, found_in
        from clew.trace.alarm import unwatched

        assert self._collector is not None
        assert self._watcher is not None
        watcher, began = self._watcher, perf_counter()
        step, sink = max(watcher.step - 1, 0), watcher.sink
        try:
            pipelines = chosen(found_in(watcher, self._collector), self.options.loader)
        except NoSuchLoader as error:
            say(f"clew: {error}")
            return
        subject = self._capture.subject() if self._capture is not None and self._capture.began else None
        progress = self._progress()
        try:
            with unwatched(watcher):
                self.report = conduct(
                    pipelines,
                    self.options,
                    lambda kind, data: sink.fact(kind, step, data),
                    subject=subject,
                    progress=progress,
                )
            self.report = replace(self.report, seconds=perf_counter() - began)
        finally:
            if progress is not None:
                progress.clear()
            self._collector.remove()
            watcher.observers.clear()
            watcher.sampler.excused += perf_counter() - began
            watcher.clock.restart()
        self._write_run_files(step)

    def _progress(self) -> Any:
        session = self._session
        if session.rank != 0 or session.options.quiet or sys.stderr is None or not sys.stderr.isatty():
            return None
        from clew.show.progress_line import ProgressLine

        return ProgressLine(sys.stderr)

    # -- saying what came out --

    def say_all(self) -> None:
        """At the end of the run: files, and the screen."""
        if self._bare is not None:
            for line in self._bare.said():
                say(f"clew: {line}")
        elif self.report is not None:
            self.write_files()
            if not self.options.go_on:  # else it has been shown when it was done
                self.render()
        elif not self._session.options.quiet and not self.done:
            say(f"clew: no data was seen: {self._why_nothing()}")

    def render(self) -> None:
        """On stderr."""
        if (
            self.report is None
            or self._session.options.quiet
            or self._session.rank != 0
            or sys.stderr is None
        ):
            return
        self._judged().render(stream=sys.stderr)

    def write_files(self) -> None:
        """`--json` and `--html`."""
        session = self._session
        if self.report is None:
            return
        from clew.show.data_html import page
        from clew.show.data_out import report_json
        from clew.show.json_out import write_json

        report = self._judged()
        json_path, html_path = session.options.json_path, self.options.html_path
        if json_path is not None:
            self._write(json_path, lambda: write_json(json_path, report_json(report)))
        if html_path is not None:
            self._write(html_path, lambda: html_path.write_text(page(report), encoding="utf-8"))

    def _write(self, path: Path, write: Callable[[], Any]) -> None:
        try:
            write()
        except OSError as error:
            say(f"clew: the report could not be written to {path}: {error.strerror or error}")

    def _write_run_files(self, step: int) -> None:
        """What the browser's view of the data shows (docs/api.md)."""
        session = self._session
        if self.report is None or session.rank != 0 or not session._recording:
            return
        from clew.show.data_out import batches_json, samples_json
        from clew.show.json_out import write_json

        folder = session.path / "data"
        folder.mkdir(exist_ok=True)
        write_json(folder / "samples.json", samples_json(self.report, step))
        write_json(folder / "batches.json", batches_json(self.report, step))

    def _why_nothing(self) -> str:
        if self._watcher is None:
            return self._session._why_idle()
        return "the script ended before its first training step and made no DataLoader"

    @property
    def verdict(self) -> Verdict:
        """On the data alone: a few steps are no ground to judge the training on. Bare, on the run."""
        if self.report is None:
            return self._session.verdict
        from clew.checks.view import RunView
        from clew.data_report import judged

        _ = self._session.verdict  # which sees to it that all facts are there
        return judged(RunView(self._session._judge.data))

    def _judged(self) -> DataReport:
        assert self.report is not None
        return replace(self.report, verdict=self.verdict, what=self._session.summary().script)
