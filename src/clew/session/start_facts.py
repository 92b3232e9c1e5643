"""What is written into the log when a run starts: arguments, checks to leave out, the state of git."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

from clew.checks.ignore_rules import Rule, rules_of
from clew.session.run_meta import argv_config, git_state

if TYPE_CHECKING:
    from clew.session.session import Session
    from clew.store.write.log_writer import LogWriter


def write_start_facts(session: Session) -> None:
    """Asking git takes time, so that is done on a thread of its own."""
    writer, options = session.writer, session.options
    if options.args:
        writer.fact("config", 0, {"source": "argv", "values": argv_config(options.args)})
    for rule in _rules(session):
        writer.fact("ignore", 0, rule.to_json())
    threading.Thread(target=_write_git_state, args=(writer,), daemon=True, name="clew-git").start()


def _rules(session: Session) -> list[Rule]:
    """What is to be left out, by the command line and by the project's settings."""
    from clew.session.project_settings import BadSettings, project_rules

    asked = rules_of(session.options.ignore)
    try:
        return [*asked, *project_rules(Path.cwd())]
    except (BadSettings, OSError) as error:
        session.say(f"{error}; these settings are not used")
        return asked


def _write_git_state(writer: LogWriter) -> None:
    state = git_state()
    if state is not None:
        writer.fact("git", 0, state)
