"""A verdict on one screen: the root cause first, its consequences below.

`header_line` and `live_line` return plain strings without rich: they are printed while the user's
program runs, and must cost nothing and import nothing.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

from clew.records.finding import Finding, Severity
from clew.records.plural import counted
from clew.records.verdict import NEEDS_DATA, NEEDS_PROFILE, Verdict
from clew.render.run_summary import LONGEST_COMMAND, RunSummary
from clew.render.safe_text import encodable, neutral, short_path
from clew.render.screen import STYLES, Screen, encoding_of, glyphs_for
from clew.render.verdict.finding_block import COLUMN, draw_findings, layer, location

if TYPE_CHECKING:
    from rich.text import Text

MOST_NAMED = 4  # checks named in the line about those that did not judge


def header_line(version: str, path: str, stream: IO[str]) -> str:
    """The one line at the start of `clew run`."""
    dot = glyphs_for(stream).dot
    text = f"clew {version} {dot} recording to {short_path(path)} {dot} clew why"
    return encodable(neutral(text), encoding_of(stream))


def live_line(finding: Finding, stream: IO[str]) -> str:
    """A finding at the moment it is reported."""
    mark = glyphs_for(stream).mark(finding.severity)
    where = location(finding.site) or layer(finding.site)
    step = f"step {finding.step}" if finding.step is not None else None
    tail = ", ".join(part for part in (step, where) if part)
    text = f"clew: {mark} {neutral(finding.check, 60)}: {neutral(finding.message, 200)}"
    return encodable(f"{text} ({tail})" if tail else text, encoding_of(stream))


def render_verdict(
    verdict: Verdict,
    run: RunSummary,
    *,
    stream: IO[str] | None = None,
    width: int | None = None,
    full: bool = False,
) -> None:
    """Draw the verdict on a stream (stderr by default); `full` leaves nothing out."""
    screen = Screen(stream, width)
    if run.idle is not None and not verdict.findings:
        screen.block(f"clew: nothing to check: {neutral(run.idle)}")
        _draw_notes(screen, run)
    elif not verdict.findings or (verdict.worst() is Severity.ADVICE and not full):
        _draw_healthy(screen, verdict, run, full)
    else:
        _draw_findings(screen, verdict, run, full)


def _draw_healthy(screen: Screen, verdict: Verdict, run: RunSummary, full: bool) -> None:
    """No problems; advice, if any, one line each."""
    judged = run.checks - len(verdict.not_judged)
    over = f"{counted(run.steps, 'step')} of {_script(run)}"
    if run.state == "failed":
        screen.block(f"clew: the script failed; {counted(judged, 'check')} found no other problem in {over}")
    elif judged > 0:
        good = screen.text(f"{screen.glyphs.good} clew: no problems found", "bold green")
        screen.block(screen.join(good, f" ({counted(judged, 'check')}, {over})"))
    else:
        screen.block(f"clew: not judged: {over} were not enough for any of {counted(run.checks, 'check')}")
    _draw_notes(screen, run)
    for finding in verdict.findings:
        text = f"{neutral(finding.check, 60)}: {neutral(finding.message, 200)}"
        screen.block(screen.text(text, "dim"), label="advice", column=COLUMN)
    if verdict.not_judged or verdict.ignored:
        _draw_checks(screen, verdict, run, full or judged <= 0)


def _draw_findings(screen: Screen, verdict: Verdict, run: RunSummary, full: bool) -> None:
    _draw_title(screen, verdict, run)
    draw_findings(screen, verdict.findings, run, full=full)
    screen.blank()
    screen.rule()
    _draw_notes(screen, run)
    _draw_ruled_out(screen, verdict, full)
    _draw_checks(screen, verdict, run, full)
    _draw_footer(screen, verdict, run, full)


def _draw_title(screen: Screen, verdict: Verdict, run: RunSummary) -> None:
    worst = verdict.worst() or Severity.ADVICE
    state = run.state if run.state != "finished" else ""
    parts: list[str | Text] = [
        screen.text(_found(verdict), STYLES[worst.value]),
        _script(run),
        counted(run.steps, "step"),
        state,
    ]
    screen.rule()
    line = screen.join(*parts, gap=f" {screen.glyphs.dot} ")
    screen.line(screen.text("clew  ", "bold"), line)


def _found(verdict: Verdict) -> str:
    counts = {s: sum(f.severity is s for f in verdict.findings) for s in Severity}
    words = {
        Severity.ERROR: ("error", "errors"),
        Severity.WARNING: ("warning", "warnings"),
        Severity.ADVICE: ("piece of advice", "pieces of advice"),
    }
    return ", ".join(counted(n, *words[severity]) for severity, n in counts.items() if n)


def _draw_notes(screen: Screen, run: RunSummary) -> None:
    """What limits the verdict: an unfinished or damaged log, other ranks, probes that failed."""
    notes = []
    if run.state in ("killed", "running"):
        killed = "the run was killed: the verdict is based on what was recorded before"
        running = "the run is still running: the verdict is based on what has been recorded so far"
        notes.append(killed if run.state == "killed" else running)
    if run.ranks > 1:
        notes.append(f"{run.ranks} ranks were recorded; this is the verdict for the first one")
    notes += [f"incomplete, could not be read: {line}" for line in run.damage]
    notes += [f"incomplete, could not be recorded: {line}" for line in run.incidents]
    for note in notes:
        screen.block(screen.text(neutral(note), "yellow"), label="note", column=COLUMN)


def _draw_checks(screen: Screen, verdict: Verdict, run: RunSummary, full: bool) -> None:
    """How many checks ran; those that could not judge are named, or the run would look healthy."""
    silent = [entry for entry in verdict.not_judged if not entry.unasked]
    unasked = sum(entry.needs_experiment for entry in verdict.not_judged)
    asked = run.checks - (len(verdict.not_judged) - len(silent))
    judged = f"{asked - len(silent)} of {asked} ran"
    if silent and not full:
        names = ", ".join(neutral(entry.check, 40) for entry in silent[:MOST_NAMED])
        more = f" and {len(silent) - MOST_NAMED} more" if len(silent) > MOST_NAMED else ""
        judged += f"; not judged: {names}{more}"
    _draw_row(screen, "checks", judged)
    for item in verdict.ignored:
        why = f": {neutral(item.why, 120)}" if item.why else ""
        _draw_row(screen, "", f"{neutral(item.check, 60)} found, but ignored{why}")
    for entry in silent if full else ():
        _draw_row(screen, "", f"{neutral(entry.check, 60)} not judged: {neutral(entry.reason)}")
    if unasked:
        need = "more check needs" if unasked == 1 else "more checks need"
        _draw_row(screen, "", f"{unasked} {need} an experiment: run {_examining(run)}")
    for reason in (NEEDS_PROFILE, NEEDS_DATA) if full else ():
        number = sum(entry.reason == reason for entry in verdict.not_judged)
        if number:
            need = "more check needs" if number == 1 else "more checks need"
            _draw_row(screen, "", f"{number} {need} {reason.removeprefix('needs ')}")


def _examining(run: RunSummary) -> str:
    """The command that runs the rest; a notebook has no script to run."""
    if run.script.endswith(".py") or run.script.startswith("-m "):
        return f"clew check {neutral(run.called, LONGEST_COMMAND)}"  # to be copied: all of it
    return "clew.examine(model, loss_fn, batch)"


def _draw_ruled_out(screen: Screen, verdict: Verdict, full: bool) -> None:
    """The other explanations that were examined: those that could have caused the findings."""
    names = [neutral(name, 40) for name in (verdict.ruled_out if full else verdict.other_causes)]
    shown = names if full else names[:MOST_NAMED]
    if shown:
        more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
        _draw_row(screen, "ruled out", ", ".join(shown) + more)


def _draw_row(screen: Screen, label: str, text: str) -> None:
    screen.block(screen.text(text, "dim"), label=label, column=COLUMN)


def _draw_footer(screen: Screen, verdict: Verdict, run: RunSummary, full: bool) -> None:
    all_of_it = "" if full or not run.path else f" {screen.glyphs.dot} clew why --all"
    if run.path:
        _draw_row(screen, "run", neutral(short_path(run.path), 200))
    _draw_row(screen, "more", f"clew explain {neutral(verdict.findings[0].check, 60)}{all_of_it}")


def _script(run: RunSummary) -> str:
    return neutral(run.script, 60)
