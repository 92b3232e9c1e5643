"""The recording of a run: its folder and log, the facts known at its start, and failures inside Clew.

A failure inside Clew is an incident: recorded, reported once, and never the program's problem.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from clew.checks.ignore_rules import rules_of
from clew.hooks.entry.guard import Guard
from clew.records.facts.run_facts import ConfigFact, GitFact, IgnoreFact, IncidentFact, ThresholdsFact
from clew.render.stderr_messages import in_short, say
from clew.session.project_settings import ProjectSettings, read_settings, say_unused
from clew.session.run_meta import argv_config, git_state, rank_and_run_id, run_meta
from clew.session.run_options import RunOptions
from clew.store.read.run_errors import CannotCreate
from clew.store.read.run_folders import create_run, default_root, rank_folder
from clew.store.write.log_writer import LogWriter


class Recording:
    """What this process writes about its run. `incidents` are the failures that were reported."""

    writer: LogWriter

    def __init__(self, options: RunOptions) -> None:
        self.options = options
        self.rank, run_id = rank_and_run_id(options)
        self.meta = run_meta(options, self.rank)
        self.settings = ProjectSettings()
        self.incidents: list[str] = []
        self.guard = Guard(self._probe_failed)
        self.recording = True  # False: there is no folder to write to
        self.path = self._create_folder(run_id)

    @property
    def step(self) -> int:
        """The step that records belong to now."""
        return 0

    def _create_folder(self, run_id: str | None) -> Path:
        root = (self.options.root or default_root()).absolute()  # the script may change the working folder
        try:
            return create_run(root, self.meta, run_id=run_id, rank=self.rank)
        except CannotCreate as error:
            self.report_incident(f"{error}; training continues without recording")
            self.recording = False
            return Path(os.devnull, "unrecorded")  # nothing can be written below this

    def _open_log(self, tap: Callable[[bytes], None], after_flush: Callable[[], None]) -> LogWriter:
        """`tap` gets every record that was written, `after_flush` is called after some were."""
        folder = rank_folder(self.path, self.rank)
        return LogWriter(folder, on_failure=self._not_written, tap=tap, after_flush=after_flush)

    # -- what is known at the start --

    def _write_start_facts(self) -> None:
        """Arguments, settings and the state of git; asking git takes time, so a thread does that."""
        if self.options.args:
            ConfigFact("argv", argv_config(self.options.args)).write(self.writer, 0)
        self._write_settings()
        threading.Thread(target=self._write_git_state, daemon=True, name="clew-git").start()

    def _write_settings(self) -> None:
        """Which findings to leave out and where checks draw the line: the command line, and the project."""
        self.settings = read_settings()
        for rule in (*rules_of(self.options.ignore), *self.settings.rules):
            IgnoreFact(rule.check, rule.where, rule.why).write(self.writer, 0)
        for setting in self.settings.thresholds:
            ThresholdsFact(**setting.to_json()).write(self.writer, 0)
        if self.rank == 0:  # the script may register an unknown check later
            self.guarded("settings", lambda: say_unused(self.settings.thresholds, unknown=False))

    def _write_git_state(self) -> None:
        state = git_state()
        if state is not None:
            GitFact(**state).write(self.writer, 0)

    # -- failures inside Clew --

    def guarded(self, name: str, action: Callable[[], object]) -> None:
        """Run an action of Clew's; a failure is recorded as an incident of this probe and goes no further."""
        try:
            action()
        except Exception as error:  # noqa: BLE001 - neither the training nor its end may change
            self.guard.note(name, error)

    def _probe_failed(self, probe: str, error: BaseException) -> None:
        """A probe raised and has been switched off."""
        text = in_short(error)
        self.report_incident(f"the {probe} probe failed and is off for this run; training continues ({text})")
        IncidentFact(probe, text).write(self.writer, self.step)

    def _not_written(self, line: str) -> None:
        """The log could not be written. Without a folder to write to, the reason was reported before."""
        if self.recording:
            self.report_incident(line)

    def report_incident(self, line: str) -> None:
        """Print each line once; with `--quiet` only the first one."""
        if line in self.incidents:
            return
        self.incidents.append(line)
        if not self.options.quiet or len(self.incidents) == 1:
            self.say(line)

    # -- on stderr --

    @property
    def speaks(self) -> bool:
        """Whether this process prints results: one process of a run does, unless the user wants it quiet."""
        return self.rank == 0 and not self.options.quiet and sys.stderr is not None

    def say(self, line: str) -> None:
        """Print one line, in one piece."""
        say(f"clew: {line}")
