"""`clew check` in a recorded run: the first steps are captured, experimented on, and the script is ended.

The experiments run between two steps, with the seams looking away, on models and data that are
afterwards bit by bit as they were: with `--continue` the script trains on as if nothing had been.
"""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from clew.fixes_tried import prove_findings
from clew.live import RunStopped, say
from clew.options import CheckOptions

if TYPE_CHECKING:
    from clew.attach.guard import Guard
    from clew.attach.watcher import Watcher
    from clew.experiments.capturing import Capture
    from clew.session import Session
    from clew.show.preflight import Preflight

PROOFS = 0.2  # of the time limit that is kept for trying the fixes of what was found
OTHERS_TRAIN = 2.0  # seconds of processor time in child processes that look like training


class PreflightRun:
    """The experiments of one session: when to make them, and what is said about them."""

    NOTHING_CHECKED = 2  # exit code: a script that was not examined must not look healthy

    def __init__(self, session: Session, options: CheckOptions) -> None:
        self._session = session
        self.options = options
        self._capture: Capture | None = None
        self._watcher: Watcher | None = None
        self.done = False

    def wire(self, watcher: Watcher, guard: Guard) -> None:
        """Torch is there: look at all of the first steps."""
        self._watcher = watcher
        self._capture = watch_first_steps(watcher, guard, self.options.batches)
        watcher.between_steps.append(self.between_steps)

    def between_steps(self, step: int) -> None:
        """On the training thread, after an update."""
        if self._capture is None or not (self._capture.finished or self.done):
            return
        if not self.done:
            self.conduct()
            if self.options.go_on:
                self._session._guarded("report", self.render)
            elif not self._session.options.quiet:
                say(f"clew: the script was ended after {_steps(step)}; --continue would let it train on")
        if not self.options.go_on:
            raise RunStopped(0)

    def script_ended(self) -> None:
        """It made fewer steps than were waited for: those must do."""
        if self._capture is not None and self._capture.began and not self.done:
            self.conduct()
            if self.options.go_on:
                self._session._guarded("report", self.render)

    def conduct(self) -> None:
        """Make the experiments, once; a failure of our own is an incident of the run."""
        self.done = True
        self._session._guarded("experiments", self._conduct)

    def _conduct(self) -> None:
        from clew.experiments.running import chosen, run_experiments
        from clew.trace.alarm import unwatched

        assert self._capture is not None
        assert self._watcher is not None
        watcher, began = self._watcher, perf_counter()
        step, sink = max(watcher.step - 1, 0), watcher.sink
        subject = self._capture.subject()
        progress = self._progress()
        try:
            with unwatched(watcher), untouched(subject.loader):
                run_experiments(
                    subject,
                    chosen(self.options.only, self.options.skip),
                    lambda kind, data: sink.fact(kind, step, data),
                    time_limit=self.options.time_limit * (1 - PROOFS),
                    progress=progress,
                )
                left = self.options.time_limit - (perf_counter() - began)
                prove_findings(self._session, subject, step, left, self.options.only)
        finally:
            if progress is not None:
                progress.clear()
            watcher.observers.clear()
            watcher.sampler.excused += perf_counter() - began
            watcher.clock.restart()

    def _progress(self) -> Any:
        session = self._session
        if session.rank != 0 or session.options.quiet or sys.stderr is None or not sys.stderr.isatty():
            return None
        from clew.show.progress_line import ProgressLine

        return ProgressLine(sys.stderr)

    # -- saying what came out --

    def report(self) -> None:
        """At the end of the run: files, and the table."""
        if self.done:
            self.write_files()
            self.render()
        elif not self._session.options.quiet:
            say(f"clew: nothing was checked: {self._why_nothing()}")

    def render(self) -> None:
        """The table and the verdict, on stderr."""
        if self._session.options.quiet or self._session.rank != 0 or sys.stderr is None:
            return
        from clew.show.preflight_terminal import render_preflight

        drawn = random.getstate()  # rich draws names for its styles from the program's generator
        try:
            render_preflight(self._read(), self._session.summary(), stream=sys.stderr)
        finally:
            random.setstate(drawn)

    def write_files(self) -> None:
        """`--json`, `--junit` and `--html`."""
        session = self._session
        if not self.done:
            return
        from clew.show.json_out import write_json
        from clew.show.preflight_out import junit, preflight_json

        found, summary = self._read(), session.summary()
        json_path, junit_path = session.options.json_path, self.options.junit_path
        if json_path is not None:
            self._write(json_path, lambda: write_json(json_path, preflight_json(found, summary)))
        if junit_path is not None:
            self._write(junit_path, lambda: junit_path.write_text(junit(found), encoding="utf-8"))
        html_path = self.options.html_path
        if html_path is not None:
            from clew.show.preflight_html import page

            self._write(html_path, lambda: html_path.write_text(page(found, summary), encoding="utf-8"))

    def _write(self, path: Path, write: Callable[[], Any]) -> None:
        try:
            write()
        except OSError as error:
            say(f"clew: the report could not be written to {path}: {error.strerror or error}")

    def _read(self) -> Preflight:
        from clew.checks.view import RunView
        from clew.show.preflight import Preflight

        session = self._session
        verdict = session.verdict  # which sees to it that all facts are there
        return Preflight.read(RunView(session._judge.data), verdict, session.summary().script)

    def _why_nothing(self) -> str:
        if self._watcher is None:
            return self._session._why_idle()
        if _children_worked():
            return (
                "no training step was seen in this process, but it started others that worked; "
                "check the program that trains"
            )
        return "the script ended before its first training step, or does not train with torch"


_EVENTS = ("forward", "loss", "backward")


def watch_first_steps(watcher: Watcher, guard: Guard, batches: int) -> Capture:
    """Capture so many batches, in steps that are all looked at."""
    from clew.experiments.capturing import Capture

    capture = Capture(watcher, batches)
    safely = {name: guard.inner("capture", getattr(capture, name)) for name in _EVENTS}
    watcher.observers.append(SimpleNamespace(**safely))
    watcher.sampler.also = range(batches + 2)
    return capture


def _children_worked() -> bool:
    try:
        import resource
    except ImportError:
        return False
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime > OTHERS_TRAIN


@contextlib.contextmanager
def untouched(loader: Any) -> Iterator[None]:
    """Generators that a loader and its samplers draw from go on from where they were."""
    import torch

    owners = [loader, *(getattr(loader, name, None) for name in ("sampler", "batch_sampler"))]
    owners.append(getattr(owners[-1], "sampler", None))
    held = [getattr(owner, "generator", None) for owner in owners if owner is not None]
    states = [(g, g.get_state()) for g in held if isinstance(g, torch.Generator)]
    try:
        yield
    finally:
        for generator, state in states:
            generator.set_state(state)


def _steps(number: int) -> str:
    return "1 step" if number == 1 else f"{number} steps"
