"""How a run reports itself: a line at the start; the verdict, its file and the exit code at the end."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.records.facts.fact import facts_of
from clew.records.facts.run_facts import IgnoreFact
from clew.records.finding import Severity
from clew.render.screen import rng_restored
from clew.render.stderr_messages import say, to_stderr
from clew.session.project_settings import say_unused
from clew.session.run_options import FAILED_ON, SAW_NOTHING
from clew.store.read.run_errors import RunError

if TYPE_CHECKING:
    from clew.render.run_summary import RunSummary
    from clew.session.session import Session


def say_header(session: Session) -> None:
    """Where the run is recorded; without a folder there is nothing to see later."""
    if session.recording and session.speaks:
        from clew.records.version import __version__
        from clew.render.verdict.verdict_terminal import header_line

        say(header_line(__version__, str(session.path), sys.stderr))


@rng_restored()
def report(session: Session) -> None:
    """What the activities have to report, and the verdict, unless one of them says all there is to say."""
    if session.rank != 0:
        return
    if session.watcher is not None and session.speaks:
        _say_unknown_rules(session)
        say_unused(session.settings.thresholds)
    if any(activity.report() for activity in session.activities):
        return
    if not any(activity.writes_json for activity in session.activities):
        _write_json(session)
    if session.speaks:
        _say_verdict(session)


def _say_verdict(session: Session) -> None:
    if session.watcher is None:
        session.say(f"nothing to check: {session.why_idle()}")
        return
    from clew.render.verdict.verdict_terminal import render_verdict

    render_verdict(session.verdict, session.summary(), stream=to_stderr())


def _say_unknown_rules(session: Session) -> None:
    """A misspelt name would otherwise silently ignore nothing."""
    from clew.checks.base import UnknownCheck
    from clew.checks.catalog import find

    for name in {fact.check for fact in facts_of(IgnoreFact, session.judge.data.facts)}:
        try:
            find(name)
        except UnknownCheck as error:
            session.say(f"ignore: {error}")


def _write_json(session: Session) -> None:
    from clew.render.verdict_json import verdict_json, write_json

    def write(path: Path) -> None:
        write_json(path, verdict_json(session.verdict, session.summary()))

    write_file(session.options.json_path, write, "verdict")


def write_file(path: Path | None, write: Callable[[Path], Any], what: str = "report") -> None:
    """Write a file if the user asked for it; if that fails, say so and go on."""
    if path is None:
        return
    try:
        write(path)
    except OSError as error:
        say(f"clew: the {what} could not be written to {path}: {error.strerror or error}")


def summary_of(session: Session) -> RunSummary:
    """The run in a few words, from its folder; from memory if nothing could be written."""
    from clew.render.run_summary import summarise, unrecorded
    from clew.store.read.run_reader import open_run

    checks = session.verdict.asked
    try:
        return summarise(open_run(session.path), checks)
    except (RunError, OSError):
        lost = tuple(session.incidents)
        return unrecorded(session.path, session.meta, session.judge.data, checks, lost)


def exit_code(session: Session) -> int | None:
    """The exit code of a script that ended well, given `--fail-on` and what was asked for; None: its own."""
    if any(activity.saw_nothing for activity in session.activities):
        return SAW_NOTHING
    own = [verdict for activity in session.activities if (verdict := activity.verdict) is not None]
    worst, wanted = (own[0] if own else session.verdict).worst(), session.options.fail_on
    if wanted is None or worst is None:
        return None
    return FAILED_ON if worst.rank <= Severity(wanted).rank else None
