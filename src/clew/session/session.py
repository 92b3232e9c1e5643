"""The whole flow on one screen: start, attach to torch, record, judge, report.

    program → hooks (seams, watcher) → store (log writer) → log
                                             └→ store (run data) → checks (runner) → render

A `Session` is one recorded run. `clew run` starts one around a script (`start_run`), `clew.attach`
around a block of code; there is at most one in a process, and a second `attach` joins it.
What else a run may do (experiments, a profile, a replay, ...) are its activities.
"""

from __future__ import annotations

import atexit
from typing import TYPE_CHECKING, Any

from clew.records.facts.run_facts import IdleFact
from clew.records.verdict import Verdict
from clew.session.active_session import activate, deactivate
from clew.session.activities.activity_list import activities_of
from clew.session.live_judge import LiveJudge
from clew.session.recording import Recording
from clew.session.run_options import RunOptions
from clew.session.run_report import exit_code, report, say_header, summary_of
from clew.session.script_errors import script_failed
from clew.session.torch_attachment import TorchAttachment
from clew.session.user_log import UserLog

if TYPE_CHECKING:
    from clew.hooks.entry.launcher import Outcome
    from clew.hooks.seams.torch_hooks import Seams
    from clew.hooks.steps.watcher import Watcher
    from clew.render.run_summary import RunSummary
    from clew.store.read.run_data import RunData


def start_run(options: RunOptions) -> Session:
    """Begin recording for `clew run`; torch is attached to when the script imports it."""
    session = Session(options)
    session.start()
    return session


class Session(Recording):
    """One recorded run of this process."""

    watcher: Watcher | None = None  # what sees the training; None until torch is imported
    seams: Seams | None = None  # where torch is wrapped; likewise

    def __init__(self, options: RunOptions) -> None:
        super().__init__(options)
        self.judge = LiveJudge(self)
        self.user_log = UserLog(self)
        self._torch = TorchAttachment(self)
        self.activities = activities_of(self)
        self.writer = self._open_log(tap=self._written, after_flush=self.judge.judge_if_due)
        self._joined = 0
        self._closed = False

    def start(self) -> None:
        """From here on torch is watched as soon as it is imported."""
        activate(self)
        self._write_start_facts()
        say_header(self)
        self._torch.wait()

    # -- attach --

    def introduce(self, *things: Any) -> None:
        """Name models and optimizers before they are first used."""
        self._torch.introduce(*things)

    def pause(self) -> None:
        """Detach for a while: nothing of Clew's is left in torch."""
        self._torch.detach()

    def resume(self) -> None:
        """Attach again."""
        self._torch.reattach()

    def probes(self) -> list[str]:
        """The names of the probes, each of which may fail without harm."""
        return sorted(set(self.guard.names))

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
        return self.judge.final_verdict if self._closed else self.verdict_so_far()

    def verdict_so_far(self) -> Verdict:
        """What the checks say of all that was recorded up to now."""
        self.writer.flush()
        return self.judge.verdict()

    def why_idle(self) -> str:
        """Why there is nothing to check."""
        return self._torch.why_idle()

    # -- report --

    def summary(self) -> RunSummary:
        """The run in a few words."""
        return summary_of(self)

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
