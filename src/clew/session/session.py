"""The whole flow on one screen: start, attach to torch, record, judge, report.

    program → hooks (seams, watcher) → store (log writer) → log
                                             └→ store (run data) → checks (runner) → render

A `Session` is one recorded run. `clew run` starts one around a script (`start_run`), `clew.attach`
around a block of code; there is at most one in a process, and a second `attach` joins it.
What else a run may do (experiments, a profile, a replay, ...) are its activities.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.hooks.entry.guard import Guard
from clew.records.facts.run_facts import IdleFact
from clew.records.verdict import Verdict
from clew.render.rich_rng import undrawn
from clew.render.run_summary import NO_STEP, RunSummary
from clew.render.stderr_messages import say
from clew.session.active_session import activate, deactivate
from clew.session.activities.activity_list import activities_of
from clew.session.incidents import Incidents
from clew.session.live_judge import LiveJudge
from clew.session.project_settings import ProjectSettings
from clew.session.run_meta import rank_and_run_id, run_meta
from clew.session.run_options import RunOptions
from clew.session.run_report import exit_code, report, say_header, summary_of
from clew.session.script_errors import script_failed
from clew.session.start_facts import read_settings, write_start_facts
from clew.session.torch_attachment import TorchAttachment
from clew.session.user_notes import UserNotes
from clew.store.read.run_errors import CannotCreate
from clew.store.read.run_folders import create_run, default_root, rank_folder
from clew.store.write.log_writer import LogWriter

if TYPE_CHECKING:
    from clew.hooks.entry.launcher import Outcome
    from clew.hooks.seams.torch_hooks import Seams
    from clew.hooks.steps.watcher import Watcher
    from clew.store.read.run_data import RunData


def start_run(options: RunOptions) -> Session:
    """Begin recording for `clew run`; torch is attached to when the script imports it."""
    session = Session(options)
    session.start()
    return session


class Session:
    """One recorded run of this process."""

    def __init__(self, options: RunOptions) -> None:
        self.options = options
        self.rank, run_id = rank_and_run_id(options)
        self.meta = run_meta(options, self.rank)
        self.settings = ProjectSettings()
        self.recording = True  # False: there is no folder to write to
        self.incidents = Incidents(self)
        self.guard = Guard(self.incidents.failed)
        self.judge = LiveJudge(self)
        self._torch = TorchAttachment(self)
        self.path = self._make_folder(run_id)
        self.activities = activities_of(self)
        self.writer = LogWriter(
            rank_folder(self.path, self.rank),
            on_failure=self.incidents.not_written,
            tap=self._written,
            after_flush=self.judge.look,
        )
        self.notes = UserNotes(self)
        self._joined = 0
        self._closed = False
        self._verdict: Verdict | None = None

    # -- start --

    def start(self) -> None:
        """From here on torch is watched as soon as it is imported."""
        activate(self)
        self.settings = read_settings(self)
        write_start_facts(self)
        say_header(self)
        self._torch.wait()

    def _make_folder(self, run_id: str | None) -> Path:
        root = (self.options.root or default_root()).absolute()  # the script may change the working folder
        try:
            return create_run(root, self.meta, run_id=run_id, rank=self.rank)
        except CannotCreate as error:
            self.incidents.report(f"{error}; training continues without recording")
            self.recording = False
            return Path(os.devnull, "unrecorded")  # nothing can be written below this

    # -- attach --

    @property
    def watcher(self) -> Watcher | None:
        """What sees the training; None until torch is imported."""
        return self._torch.watcher

    @property
    def seams(self) -> Seams | None:
        """Where torch is wrapped; None until torch is imported."""
        return self._torch.seams

    def introduce(self, *things: Any) -> None:
        """Name models and optimizers before they are first used."""
        self._torch.introduce(*things)

    def pause(self) -> None:
        """Detach for a while; nothing of Clew's is left in torch."""
        self._torch.detach()

    def resume(self) -> None:
        """Attach again."""
        self._torch.reattach()

    def probes(self) -> list[str]:
        """The names of the probes, each of which may fail without harm."""
        return sorted(set(self.guard.names))

    def guarded(self, name: str, action: Callable[[], object]) -> None:
        """Do something of ours; a failure is an incident of this probe, and reaches nobody."""
        try:
            action()
        except Exception as error:  # noqa: BLE001 - neither the training nor its end may change
            self.guard.note(name, error)

    # -- record --

    @property
    def step(self) -> int:
        """The step that is open now."""
        return self.watcher.step if self.watcher is not None else 0

    def _written(self, payload: bytes) -> None:
        """A record is in the log. On the log's thread."""
        self.judge.feed(payload)
        for activity in self.activities:
            activity.written(payload)

    def recorded(self) -> RunData:
        """All that was recorded so far; waits until it has been written."""
        self.writer.flush()
        return self.judge.data

    # -- judge --

    @property
    def verdict(self) -> Verdict:
        """The verdict: on the whole run once it is closed, otherwise on what is known so far."""
        if self._verdict is None:
            if not self._closed:
                return self.verdict_so_far()
            idle = self.watcher is None
            self._verdict = Verdict() if idle else self.judge.final(self.path, self.rank)
        return self._verdict

    def verdict_so_far(self) -> Verdict:
        """What the checks say of all that was recorded up to now."""
        self.writer.flush()
        return self.judge.verdict()

    def why_idle(self) -> str:
        """Why there is nothing to check."""
        if self._torch.missing:
            return "the script needs torch, which is not installed here: pip install torch"
        return "the script never imported torch" if self.watcher is None else NO_STEP

    # -- report --

    def summary(self) -> RunSummary:
        """The run in a few words."""
        return summary_of(self)

    def say(self, line: str, prefix: str = "clew: ") -> None:
        """On stderr, in one piece."""
        say(prefix + line)

    def _repr_html_(self) -> str:
        """As a notebook shows it: what is known so far, or the verdict once it is closed."""
        from clew.render.verdict.notebook import loss_points, run_html

        return run_html(self.verdict, self.summary(), loss_points(self.judge.data))

    # -- the end --

    def finish(self, outcome: Outcome) -> int | None:
        """End the run of a script: the exit code that `--fail-on` wants, or None."""
        if outcome.exception is not None:
            script_failed(self, outcome.exception)
        for activity in self.activities:
            activity.script_ended()
        self.close("finished" if outcome.exit_code == 0 else "failed", outcome.exit_code)
        return exit_code(self) if outcome.exit_code == 0 else None

    def close(self, state: str = "finished", exit_code: int | None = None) -> None:
        """Detach, write everything out, judge, and report what was found. Safe to call twice."""
        if self._joined:
            self._joined -= 1
            return
        if self._closed:
            return
        self._closed = True
        deactivate(self)
        atexit.unregister(self.close)
        self._torch.stop_waiting()
        for activity in self.activities:
            self.guarded(activity.name, activity.stop)
        self.pause()
        if self.watcher is not None:
            self.guarded("last-values", self.watcher.finish)
        for activity in reversed(self.activities):
            self.guarded(activity.name, activity.close)
        if self.step == 0:
            IdleFact(self.why_idle()).write(self.writer, 0)
        self.writer.close(state, exit_code)
        with undrawn():
            self.guarded("report", lambda: report(self))
        for activity in self.activities:
            self.guarded(activity.name, activity.ended)

    def abandon(self) -> None:
        """This is a forked child: the run belongs to the parent."""
        self._closed = True
        self._torch.stop_waiting()
        self.pause()
        self.writer.abandon()

    def join(self) -> None:
        """Attach once more: the session is closed when every user has closed it."""
        self._joined += 1

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if error is not None and not self._joined:
            script_failed(self, error)
        self.close("finished" if error is None else "failed")
