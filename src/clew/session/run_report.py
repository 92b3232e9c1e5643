"""What a run says of itself on stderr: a line when it starts, the verdict when it is over, the exit code."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from clew.records.finding import Severity
from clew.render.stderr_messages import to_stderr
from clew.session.project_settings import say_unused
from clew.session.run_options import FAILED_ON, SAW_NOTHING
from clew.store.read.run_errors import RunError

if TYPE_CHECKING:
    from clew.render.run_summary import RunSummary
    from clew.session.session import Session


def say_header(session: Session) -> None:
    """Where the run is recorded; without a folder there is nothing to see later."""
    if session.recording and session.rank == 0 and not session.options.quiet and sys.stderr is not None:
        from clew.records.version import __version__
        from clew.render.verdict.verdict_terminal import header_line

        session.say(header_line(__version__, str(session.path), sys.stderr), prefix="")


def report(session: Session) -> None:
    """What the activities have to report, and the verdict, unless one of them says all there is to say."""
    if session.rank != 0:
        return
    options = session.options
    if session.watcher is not None and not options.quiet:
        _say_unknown_rules(session)
        say_unused(session.settings.thresholds, session.say)
    if any(activity.report() for activity in session.activities):
        return
    if options.json_path is not None and not any(a.writes_json for a in session.activities):
        _write_json(session, options.json_path)
    if not options.quiet and sys.stderr is not None:
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

    for name in {str(f.data.get("check")) for f in session.judge.data.facts if f.kind == "ignore"}:
        try:
            find(name)
        except UnknownCheck as error:
            session.say(f"nothing to ignore: {error}")


def _write_json(session: Session, path: Path) -> None:
    from clew.render.verdict_json import verdict_json, write_json

    try:
        write_json(path, verdict_json(session.verdict, session.summary()))
    except OSError as error:
        session.say(f"the verdict could not be written to {path}: {error.strerror or error}")


def summary_of(session: Session) -> RunSummary:
    """The run in a few words: as it was written, or as it would have been."""
    from clew.render.run_summary import summarise, unrecorded
    from clew.store.read.run_reader import open_run

    checks = session.verdict.asked
    try:
        return summarise(open_run(session.path), checks)
    except (RunError, OSError):
        lost = tuple(session.incidents.lines)
        return unrecorded(session.path, session.meta, session.judge.data, checks, lost)


def exit_code(session: Session) -> int | None:
    """What a script that ended well ends with, by `--fail-on` and by what was asked for; None: as it did."""
    if any(activity.saw_nothing for activity in session.activities):
        return SAW_NOTHING
    own = [verdict for activity in session.activities if (verdict := activity.verdict) is not None]
    worst, wanted = (own[0] if own else session.verdict).worst(), session.options.fail_on
    if wanted is None or worst is None:
        return None
    return FAILED_ON if worst.rank <= Severity(wanted).rank else None
