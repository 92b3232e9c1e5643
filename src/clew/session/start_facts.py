"""What is written into the log when a run starts: arguments, the project's settings, the state of git."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

from clew.checks.ignore_rules import rules_of
from clew.records.facts.run_facts import ConfigFact, GitFact, IgnoreFact, ThresholdsFact
from clew.session.project_settings import BadSettings, ProjectSettings, project_settings, say_unused
from clew.session.run_meta import argv_config, git_state

if TYPE_CHECKING:
    from clew.session.session import Session
    from clew.store.write.log_writer import LogWriter


def read_settings(session: Session) -> ProjectSettings:
    """What the project's pyproject.toml says about Clew; settings that can't be used are reported."""
    try:
        return project_settings(Path.cwd())
    except (BadSettings, OSError) as error:
        session.say(f"{error}; these settings are not used")
        return ProjectSettings()


def write_start_facts(session: Session) -> None:
    """Asking git takes time, so that is done on a thread of its own."""
    writer, options = session.writer, session.options
    if options.args:
        ConfigFact("argv", argv_config(options.args)).write(writer, 0)
    _write_settings(session)
    threading.Thread(target=_write_git_state, args=(writer,), daemon=True, name="clew-git").start()


def _write_settings(session: Session) -> None:
    """What is to be left out and where checks draw the line, by the command line and by the project."""
    settings, writer = session.settings, session.writer
    for rule in (*rules_of(session.options.ignore), *settings.rules):
        IgnoreFact(**rule.to_json()).write(writer, 0)
    for setting in settings.thresholds:
        ThresholdsFact(**setting.to_json()).write(writer, 0)
    if session.rank == 0:  # a check that nobody has yet may come with the script
        session.guarded("settings", lambda: say_unused(settings.thresholds, session.say, unknown=False))


def _write_git_state(writer: LogWriter) -> None:
    state = git_state()
    if state is not None:
        GitFact(**state).write(writer, 0)
