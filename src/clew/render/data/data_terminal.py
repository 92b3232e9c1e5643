"""`clew data` on one screen: every loader, how fast it is, and what is wrong with the data."""

from __future__ import annotations

from typing import IO

from clew.records.data_report import Report
from clew.records.finding import Severity
from clew.render.data import speed_report
from clew.render.data.loader_screen import draw_look
from clew.render.data.sample_path import draw_way
from clew.render.number_text import duration
from clew.render.run_summary import RunSummary
from clew.render.safe_text import neutral
from clew.render.screen import Screen
from clew.render.verdict.finding_block import draw_effects, draw_finding, one_line
from clew.render.verdict.root_causes import effects_by_root

FULL_ROOTS = 3  # findings drawn whole: more would not fit one screen


def render_data(
    report: Report, *, stream: IO[str] | None = None, width: int | None = None, full: bool = False
) -> None:
    """Draw on a stream (stderr by default); `full` leaves nothing out."""
    screen = Screen(stream, width)
    screen.rule()
    _draw_title(screen, report)
    if report.way is not None:
        _draw_ways(screen, report)
    else:
        _draw_loaders(screen, report, full)
        _draw_findings(screen, report, full)
    for note in report.notes:
        screen.block(screen.text(neutral(note), "yellow"))
    screen.rule()


def _draw_title(screen: Screen, report: Report) -> None:
    count = len(report.looks)
    loaders = "no loader" if not count else "1 loader" if count == 1 else f"{count} loaders"
    dot = f" {screen.glyphs.dot} "
    words = [neutral(report.what, 60), loaders, duration(report.seconds)]
    screen.block(screen.join(screen.text("clew data  ", "bold"), dot.join(word for word in words if word)))


def _draw_ways(screen: Screen, report: Report) -> None:
    for shown in report.looks:
        if shown.way is not None:
            screen.blank()
            draw_way(screen, shown.way, shown.name)


def _draw_loaders(screen: Screen, report: Report, full: bool) -> None:
    for n, shown in enumerate(report.looks):
        screen.blank()
        draw_look(screen, shown, brief=n > 0 and not full)
        for measured in report.measured:
            if (measured.loader, measured.line) == (shown.name, shown.line):
                speed_report.draw(screen, measured, full=full)
    if report.surveys:
        from clew.render.data import survey_report

        survey_report.draw(screen, report.surveys, report.betweens, full=full)


def _draw_findings(screen: Screen, report: Report, full: bool) -> None:
    summary = RunSummary(
        id="data", path="", script=report.what, state="finished", steps=0, checks=report.verdict.asked
    )
    groups = effects_by_root(report.findings)
    faults = [group for group in groups if full or group[0].severity is not Severity.ADVICE]
    drawn = faults if full else faults[:FULL_ROOTS]
    for root, effects in drawn:
        screen.blank()
        draw_finding(screen, root, summary, full=full)
        draw_effects(screen, effects, summary, full=full)
    rest = [
        finding for root, effects in groups if (root, effects) not in drawn for finding in (root, *effects)
    ]
    if rest:
        screen.blank()
    for finding in rest:
        screen.block(one_line(screen, finding))
    if not groups and report.verdict.asked:
        screen.blank()
        judged = len(report.verdict.ruled_out)
        good = screen.text(f"{screen.glyphs.good} nothing wrong found", "bold green")
        screen.block(screen.join(good, f" by {judged} data checks"))
