"""The whole flow on one screen: attach to a program, record it, judge it, say what is wrong.

    program → attach.seams → attach.watcher → store.writer → log
                                                   └→ store.data → checks.runner → show

A `Session` is one recorded run. `clew run` starts one around a script (`start_run`), `clew.attach`
around a block of code (`attaching`); there is at most one in a process, and a second `attach` joins it.
What else a run may do (experiments, a profile, ...) are its parts.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from clew.checks.ignore_rules import rules_of
from clew.hooks.entry.after_import import AfterImport
from clew.hooks.entry.guard import INJECT, Guard
from clew.hooks.entry.user_line import user_frame, user_line
from clew.records import signals
from clew.records.facts.nan_facts import ReproFact
from clew.records.facts.run_facts import (
    ConfigFact,
    GitFact,
    IdleFact,
    IgnoreFact,
    IncidentFact,
    ThresholdsFact,
    VersionsFact,
)
from clew.records.finding import Severity
from clew.records.site import Site
from clew.records.verdict import Verdict
from clew.render.rich_rng import undrawn
from clew.render.run_summary import NO_STEP, RunSummary, unrecorded
from clew.render.stderr_messages import in_short, say, to_stderr
from clew.session.activities.activity_list import parts_of
from clew.session.live_judge import LiveJudge, RunStopped
from clew.session.project_settings import BadSettings, ProjectSettings, project_settings, say_unused
from clew.session.run_meta import argv_config, git_state, rank_and_run_id, run_meta
from clew.session.run_options import FAILED_ON, SAW_NOTHING, RunOptions
from clew.store.read.run_errors import CannotCreate, RunError
from clew.store.read.run_folders import create_run, default_root, rank_folder
from clew.store.write.log_writer import LogWriter

if TYPE_CHECKING:
    from clew.hooks.entry.launcher import Outcome
    from clew.hooks.seams.torch_hooks import Seams
    from clew.hooks.steps.watcher import Watcher
    from clew.labs.replay.repro.repro_writer import ReproWriter
    from clew.labs.replay.step_replay import Answer
    from clew.labs.snapshot.held_step import HeldStep
    from clew.session.source_files import SourceKeeper

_active: Session | None = None
_fork_handler_installed = False


def active() -> Session | None:
    """The session of this process, if there is one."""
    return _active


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
        self._lost: list[str] = []
        self._settings = ProjectSettings()
        self.recording = True  # False: there is no folder to write to
        self._verdict: Verdict | None = None
        self._closed = False
        self._joined = 0
        self._watcher: Watcher | None = None
        self._seams: Seams | None = None
        self._repro: ReproWriter | None = None
        self._sources: SourceKeeper | None = None
        self._guard = Guard(self._incident)
        self._metric_tables: dict[tuple[str, Site], int] = {}
        self._pending: list[Any] = []  # models and optimizers given by name, until torch is attached
        self._judge = LiveJudge(self)
        self.path = self._make_folder(run_id)
        self._writer = LogWriter(
            rank_folder(self.path, self.rank),
            on_failure=self._recording_failed,
            tap=self._judge.feed,
            after_flush=self._judge.look,
        )
        self._importing = AfterImport("torch", self._attach_to_torch)
        self._parts = parts_of(self)

    # -- beginning --

    def start(self) -> None:
        """Take the stage: from here on torch is watched as soon as it is there."""
        global _active
        _active = self
        _watch_forks()
        if self.options.args:
            values = argv_config(self.options.args)
            ConfigFact("argv", values).write(self._writer, 0)
        self._note_settings()
        threading.Thread(target=self._note_git, daemon=True, name="clew-git").start()
        self._say_header()
        self._importing.install()

    def _make_folder(self, run_id: str | None) -> Path:
        root = (self.options.root or default_root()).absolute()  # the script may change the working folder
        try:
            return create_run(root, self.meta, run_id=run_id, rank=self.rank)
        except CannotCreate as error:
            self._say_lost(f"{error}; training goes on unrecorded")
            self.recording = False
            return Path(os.devnull, "unrecorded")  # nothing can be written below this

    def _attach_to_torch(self) -> None:
        try:
            self._wire_torch()
        except Exception as error:  # noqa: BLE001 - the script's `import torch` must succeed
            self._incident("attach", error)

    def _wire_torch(self) -> None:
        from clew.hooks.seams.torch_hooks import Seams
        from clew.hooks.steps.watcher import Watcher
        from clew.labs.replay.replay_alarm import Alarm

        torch = sys.modules["torch"]
        versions = VersionsFact(str(torch.__version__), torch.get_num_threads())
        versions.write(self._writer, 0)
        self._watcher = Watcher(
            self._writer, self._guard, budget=self.options.budget, every_step=self.options.every_step
        )
        self._seams = Seams(self._watcher, self._guard)
        self._watcher.limit = self.options.steps
        self.alarm = Alarm(self._watcher)
        self.alarm.listeners.append(self._guard.probe("repro", self._save_repro))
        self._watcher.on_alarm = self._look_at_alarm
        self._watcher.between_steps += [self._seams.between_steps, self._judge.stop_if_asked]
        for part in self._parts:
            part.wire(self._watcher, self._guard, self._seams)
        self._seams.install()
        for part in self._parts:
            part.attached(self._guard)
        for thing in self._pending:
            self._watcher.introduce(thing)
        if os.environ.get(INJECT) == "list":
            self.say("probes: " + " ".join(self.probes()))

    def _look_at_alarm(self, where: str, step: int, state: Any) -> None:
        """A loss or gradient is not finite: not one of the probes, which run all the time."""
        self._guarded("replay", lambda: self.alarm(where, step, state))

    def _note_settings(self) -> None:
        """What is to be left out and where checks draw the line, by the command line and by the project."""
        self._settings = self._read_settings()
        for rule in (*rules_of(self.options.ignore), *self._settings.rules):
            IgnoreFact(**rule.to_json()).write(self._writer, 0)
        for setting in self._settings.thresholds:
            ThresholdsFact(**setting.to_json()).write(self._writer, 0)
        if self.rank == 0:  # a check that nobody has yet may come with the script
            self._guarded("settings", lambda: say_unused(self._settings.thresholds, self.say, unknown=False))

    def _read_settings(self) -> ProjectSettings:
        try:
            return project_settings(Path.cwd())
        except (BadSettings, OSError) as error:
            self.say(f"{error}; these settings are not used")
            return ProjectSettings()

    def _save_repro(self, held: HeldStep, found: Answer) -> None:
        """The step that went wrong goes into the run's folder, to be run again alone."""
        from clew.labs.replay.repro.repro_writer import ReproWriter

        if self._repro is None:
            name, step = "repro" if self.rank == 0 else f"repro-rank{self.rank}", held.step
            self._repro = ReproWriter(
                self.path / name, lambda data: self._writer.fact(ReproFact.fact_kind, step, data)
            )
        self._repro(held, found)

    # -- while it runs --

    def ignore(self, check: str, where: str = "", why: str = "") -> None:
        """Leave out a check, or its findings at some places, from here on and in later readings."""
        IgnoreFact(check.strip().lower(), where, why).write(self._writer, self.step)

    def join(self) -> None:
        """Somebody attaches again: it is closed when all have closed it."""
        self._joined += 1

    def introduce(self, *things: Any) -> None:
        """Name models and optimizers before they are seen at work."""
        if self._watcher is None:
            self._pending.extend(things)
            return
        for thing in things:
            self._watcher.introduce(thing)

    def log(self, values: dict[str, Any]) -> None:
        """Record the user's own metrics, at the step that they are about."""
        file, line = user_line(2)
        step = self._watcher.spoken_of if self._watcher is not None else 0
        site = Site(op="log", file=file, line=line)
        for name, value in values.items():
            table = self._metric_tables.get((name, site))
            if table is None:
                table = self._writer.table([signals.METRIC.member(name)], [self._writer.site(site)])
                self._metric_tables[name, site] = table
            self._writer.row(table, step, (float(value),))

    def config(self, values: dict[str, Any]) -> None:
        """Record hyperparameters."""
        ConfigFact("user", values).write(self._writer, self.step)

    @property
    def step(self) -> int:
        """The step that is open now."""
        return self._watcher.step if self._watcher is not None else 0

    def write_soon(self) -> None:
        """What was recorded so far goes to the log, and to whoever looks on."""
        self._writer.nudge()

    def catch_up(self, timeout: float) -> bool:
        """Wait until that has been looked at; no part of any step. False: it takes too long."""
        began = perf_counter()
        # The second flush begins when whoever was told of the first is done.
        done = self._writer.flush(timeout) and self._writer.flush(timeout)
        if self._watcher is not None:
            self._watcher.sampler.excused += perf_counter() - began
            self._watcher.clock.restart()
        return done

    def pause(self) -> None:
        """Detach for a while; nothing of Clew's is left in torch."""
        if self._seams is not None:
            self._seams.remove()
        for part in self._parts:
            part.detached()

    def resume(self) -> None:
        """Attach again."""
        if self._seams is not None:
            self._seams.install()

    def probes(self) -> list[str]:
        """The names of the probes, each of which can fail without harm."""
        return sorted(set(self._guard.names))

    # -- the end --

    def finish(self, outcome: Outcome) -> int | None:
        """End the run of a script: the exit code that `--fail-on` wants, or None."""
        if outcome.exception is not None:
            self._note_exception(outcome.exception)
            self._explain(outcome.exception)
        for part in self._parts:
            part.script_ended()
        self.close("finished" if outcome.exit_code == 0 else "failed", outcome.exit_code)
        if outcome.exit_code != 0:
            return None
        if any(part.saw_nothing for part in self._parts):
            return SAW_NOTHING
        own = [verdict for part in self._parts if (verdict := part.verdict) is not None]
        verdict = own[0] if own else self.verdict
        worst, wanted = verdict.worst(), self.options.fail_on
        if wanted is None or worst is None:
            return None
        return FAILED_ON if worst.rank <= Severity(wanted).rank else None

    def close(self, state: str = "finished", exit_code: int | None = None) -> None:
        """Detach, write everything out, judge, and say what was found. Safe to call twice."""
        global _active
        if self._joined:
            self._joined -= 1
            return
        if self._closed:
            return
        self._closed = True
        if _active is self:
            _active = None
        atexit.unregister(self.close)
        self._importing.remove()
        for part in self._parts:
            self._guarded(part.name, part.stop)
        self.pause()
        if self._watcher is not None:
            self._guarded("last-values", self._watcher.finish)
        for part in reversed(self._parts):
            self._guarded(part.name, part.close)
        self.keep_sources()
        if self.step == 0:
            IdleFact(self.why_idle() or "").write(self._writer, 0)
        self._writer.close(state, exit_code)
        with undrawn():
            self._guarded("report", self._report)

    def abandon(self) -> None:
        """This is a forked child: the run belongs to the parent."""
        self._closed = True
        self._importing.remove()
        self.pause()
        self._writer.abandon()

    @property
    def verdict(self) -> Verdict:
        """What the checks say: of the whole run once it is closed, else of what is known so far."""
        if self._verdict is None:
            if not self._closed:
                self._writer.flush()
                return self._judge.verdict()
            idle = self._watcher is None
            self._verdict = Verdict() if idle else self._judge.final(self.path, self.rank)
        return self._verdict

    def _repr_html_(self) -> str:
        """As a notebook shows it: what is known so far, or the verdict once it is closed."""
        from clew.render.verdict.notebook import loss_points, run_html

        return run_html(self.verdict, self.summary(), loss_points(self._judge.data))

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if error is not None and not self._joined:
            self._note_exception(error)
            self._explain(error)
        self.close("finished" if error is None else "failed")

    def summary(self) -> RunSummary:
        """The closed run in a few words: as it was written, or as it would have been."""
        from clew.render.run_summary import summarise
        from clew.store.read.run_reader import open_run

        checks = self.verdict.asked
        try:
            return summarise(open_run(self.path), checks)
        except (RunError, OSError):
            return unrecorded(self.path, self.meta, self._judge.data, checks, tuple(self._lost))

    def keep_sources(self) -> None:
        """The user's own files that the recording names go into the run's folder. Off the training thread."""
        if self._watcher is not None and self.rank == 0 and self.recording:
            self._guarded("sources", self._keep_sources)

    def _keep_sources(self) -> None:
        if self._sources is None:
            from clew.session.source_files import SourceKeeper

            script = os.path.dirname(os.path.abspath(self.options.script))
            homes = [self.meta["cwd"]] if self.options.module else [self.meta["cwd"], script]
            self._sources = SourceKeeper(self.path, homes)
        self._sources.keep(self._judge.data)

    @property
    def watches(self) -> bool:
        """Torch is there and attached to."""
        return self._watcher is not None

    def why_idle(self) -> str:
        """Why there is nothing to judge."""
        if self._importing.not_found:
            return "the script asks for torch, which is not installed here: pip install torch"
        return "the script never imported torch" if self._watcher is None else NO_STEP

    # -- saying things --

    def _report(self) -> None:
        if self.rank != 0:
            return
        if self._watcher is not None and not self.options.quiet:
            self._say_unknown_rules()
            say_unused(self._settings.thresholds, self.say)
        if any(part.report() for part in self._parts):
            return
        if self.options.json_path is not None and not any(part.writes_json for part in self._parts):
            self._write_json(self.options.json_path)
        if self.options.quiet or sys.stderr is None:
            return
        if self._watcher is None:
            self.say(f"nothing to judge: {self.why_idle()}")
            return
        from clew.render.verdict.verdict_terminal import render_verdict

        render_verdict(self.verdict, self.summary(), stream=to_stderr())

    def _say_unknown_rules(self) -> None:
        """A misspelt name would otherwise silently leave nothing out."""
        from clew.checks.base import UnknownCheck
        from clew.checks.catalog import find

        for name in {str(f.data.get("check")) for f in self._judge.data.facts if f.kind == "ignore"}:
            try:
                find(name)
            except UnknownCheck as error:
                self.say(f"nothing to ignore: {error}")

    def _write_json(self, path: Path) -> None:
        from clew.render.verdict_json import verdict_json, write_json

        try:
            write_json(path, verdict_json(self.verdict, self.summary()))
        except OSError as error:
            self.say(f"the verdict could not be written to {path}: {error.strerror or error}")

    def _say_header(self) -> None:
        if not self.recording:  # which has just been said; there is nothing to see later
            return
        if self.rank == 0 and not self.options.quiet and sys.stderr is not None:
            from clew.records.version import __version__
            from clew.render.verdict.verdict_terminal import header_line

            self.say(header_line(__version__, str(self.path), sys.stderr), prefix="")

    def say(self, line: str, prefix: str = "clew: ") -> None:
        """On stderr, in one piece."""
        say(prefix + line)

    def _recording_failed(self, line: str) -> None:
        if self.recording:  # else it has been said why
            self._say_lost(line)

    def _say_lost(self, line: str) -> None:
        """Each loss once; where nothing is to be printed, the first must do."""
        if line not in self._lost:
            self._lost.append(line)
            if not self.options.quiet or len(self._lost) == 1:
                self.say(line)

    def _incident(self, probe: str, error: BaseException) -> None:
        """A failure of our own: recorded, said once, and never the program's problem."""
        text = in_short(error)
        self._say_lost(f"the {probe} probe failed and is off for this run; training goes on ({text})")
        IncidentFact(probe, text).write(self._writer, self.step)

    def _guarded(self, name: str, action: Callable[[], None]) -> None:
        try:
            action()
        except Exception as error:  # noqa: BLE001 - the end of a run must not change its outcome
            self._guard.note(name, error)

    def _explain(self, error: BaseException) -> None:
        """After the program's own traceback: why shapes, types or devices did not fit, if that ended it."""
        if self.options.quiet or self.rank != 0 or sys.stderr is None or "torch" not in sys.modules:
            return

        def explain() -> None:
            from clew.labs.network.shape_errors.shape_error import mismatch
            from clew.render.network.shape_error_text import render_mishap
            from clew.session.loader_errors import explain_failure

            if explain_failure(self, error):
                return
            mishap = mismatch(error)
            if mishap is not None:
                render_mishap(mishap, stream=to_stderr())

        self._guarded("explanation", explain)

    def _note_exception(self, error: BaseException) -> None:
        kind = "interrupt" if isinstance(error, KeyboardInterrupt) else "exception"
        if isinstance(error, RunStopped):
            kind = "stopped"
        traceback = error.__traceback__
        while traceback is not None and traceback.tb_next is not None:
            traceback = traceback.tb_next
        data: dict[str, Any] = {"type": type(error).__name__, "message": str(error)[:2000]}
        if traceback is not None:
            data.update(file=traceback.tb_frame.f_code.co_filename, line=traceback.tb_lineno)
        data.update(zip(("user_file", "user_line"), user_frame(error.__traceback__), strict=True))
        self._writer.event(kind, self.step, data)

    def _note_git(self) -> None:
        state = git_state()
        if state is not None:
            GitFact(**state).write(self._writer, 0)


def _watch_forks() -> None:
    """A forked child (a loader's worker) must not write into its parent's run."""
    global _fork_handler_installed
    if not _fork_handler_installed and hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_after_fork)
        _fork_handler_installed = True


def _after_fork() -> None:
    global _active
    if _active is not None:
        session, _active = _active, None
        session.abandon()
