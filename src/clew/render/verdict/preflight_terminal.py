"""A pre-flight on one screen: one line per experiment, then the failures with their evidence."""

from __future__ import annotations

from textwrap import wrap
from typing import IO, TYPE_CHECKING

from clew.records.finding import Finding
from clew.records.plural import counted
from clew.render.number_text import duration
from clew.render.run_summary import LONGEST_COMMAND, RunSummary
from clew.render.safe_text import neutral, short_path
from clew.render.screen import Screen
from clew.render.verdict.finding_block import COLUMN, draw_finding, draw_findings
from clew.render.verdict.preflight_results import FAILED, PASSED, UNJUDGED, ExperimentAnswer, Preflight

if TYPE_CHECKING:
    from rich.text import Text

INDENT = 2
TIME = 9  # columns of the time, at the right
NARROW = 16  # columns below which a question does not fit next to its name


def render_preflight(
    preflight: Preflight,
    run: RunSummary,
    *,
    stream: IO[str] | None = None,
    width: int | None = None,
    full: bool = False,
) -> None:
    """Draw on a stream (stderr by default); `full` leaves nothing out."""
    screen = Screen(stream, width)
    screen.rule()
    _draw_title(screen, preflight)
    _draw_table(screen, preflight)
    _draw_unjudged(screen, preflight)
    draw_findings(screen, preflight.verdict.findings, run, full=full, plots=preflight.plots)
    _draw_end(screen, preflight, run, full)


def render_answer(
    answer: ExperimentAnswer, run: RunSummary, *, stream: IO[str] | None = None, width: int | None = None
) -> None:
    """One failed experiment by itself: its finding with all evidence."""
    if answer.finding is not None:
        draw_finding(Screen(stream, width), answer.finding, run, full=False, plots=answer.plots)


def _draw_title(screen: Screen, preflight: Preflight) -> None:
    words = {PASSED: "passed", FAILED: "failed", UNJUDGED: "not judged"}
    styles = {PASSED: "green", FAILED: "bold red", UNJUDGED: "yellow"}
    counts = [
        screen.text(f"{len(preflight.names(state))} {word}", styles[state])
        for state, word in words.items()
        if preflight.names(state)
    ]
    others = len(preflight.others)
    if others:
        counts.append(screen.text(counted(others, "other finding"), "bold red"))
    dot = f" {screen.glyphs.dot} "
    named = neutral(preflight.what, 60)
    parts: list[str | Text] = [named, screen.join(*counts, gap=", "), duration(preflight.seconds)]
    screen.block(screen.join(screen.text("clew check  ", "bold"), screen.join(*parts, gap=dot)))


def _draw_table(screen: Screen, preflight: Preflight) -> None:
    """Passed and failed in the order they ran; those that were not judged follow with the reason."""
    judged = [answer for answer in preflight.answers if answer.state != UNJUDGED]
    if judged:
        screen.blank()
    column = max((len(answer.name) for answer in judged), default=0) + 2
    for answer in judged:
        mark, style = _mark(screen, answer)
        before = len(mark) + 1 + column
        room = screen.width - INDENT - before - TIME
        name = screen.text(f"{mark} {neutral(answer.name, 60).ljust(column)}", style)
        time = screen.text(duration(answer.seconds).rjust(TIME), "dim")
        question = neutral(answer.question, 200) if room >= NARROW else ""
        first, *more = wrap(question, max(room, NARROW)) or [""]
        screen.row(screen.join(name, first.ljust(room), time), indent=INDENT)
        for line in more:
            screen.row(line, indent=INDENT + before)


def _mark(screen: Screen, answer: ExperimentAnswer) -> tuple[str, str]:
    if answer.state == FAILED:
        return screen.glyphs.error.ljust(len(screen.glyphs.good)), "bold red"
    return screen.glyphs.good, "green"


def _draw_unjudged(screen: Screen, preflight: Preflight) -> None:
    """One paragraph per reason, with the questions it left open."""
    reasons: dict[tuple[str, str], list[ExperimentAnswer]] = {}
    for answer in preflight.answers:
        if answer.state == UNJUDGED:
            reasons.setdefault((answer.reason, answer.hint), []).append(answer)
    if reasons:
        screen.blank()
    mark = screen.glyphs.dash.ljust(len(screen.glyphs.good))
    for (reason, hint), answers in reasons.items():
        names = ", ".join(neutral(answer.name, 60) for answer in answers)
        screen.block(screen.text(names, "yellow"), indent=INDENT, label=mark, column=len(mark) + 1)
        inner = INDENT + len(mark) + 1
        spent = sum(answer.seconds for answer in answers)
        time = f" ({duration(spent)})" if spent >= 0.1 else ""
        screen.block(f"not judged: {neutral(reason)}{time}", indent=inner)
        if hint:
            screen.block(screen.text(neutral(hint), "green"), indent=inner, label="to do", column=7)


def _draw_end(screen: Screen, preflight: Preflight, run: RunSummary, full: bool) -> None:
    screen.blank()
    screen.rule()
    findings = preflight.verdict.findings
    if preflight.ok:
        passed = len(preflight.names(PASSED))
        if passed:
            good = screen.text(f"{screen.glyphs.good} no problems found", "bold green")
            screen.block(screen.join(good, f" ({counted(passed, 'experiment')})"))
        else:
            screen.block(screen.text("not judged: no experiment had a result", "yellow"))
    for number, text in enumerate(_next(preflight, findings, run, full, screen.glyphs.dot)):
        screen.block(screen.text(text, "dim"), label="" if number else "next", column=COLUMN)
    if run.path:
        path = screen.text(neutral(short_path(run.path), 200), "dim")
        screen.block(path, label="run", column=COLUMN)


def _next(
    preflight: Preflight, findings: tuple[Finding, ...], run: RunSummary, full: bool, dot: str
) -> list[str]:
    """What to type now: the page of the first finding, and the same experiment again once it is fixed."""
    if preflight.ok or not findings:
        return []
    first = neutral(findings[0].check, 60)
    all_of_it = "" if full or not run.path else f" {dot} clew why --all"
    steps = [f"clew explain {first}{all_of_it}"]
    failed = preflight.names(FAILED)
    if failed:
        again = ",".join(failed[:3])
        command = f"clew check --only {again} {neutral(run.called, LONGEST_COMMAND)}"
        ours = command if run.path else f"clew.examine(…, only={list(failed[:3])})"
        steps.append(f"fix it, then run again: {ours}")
    return steps
