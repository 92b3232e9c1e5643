"""`clew data` on one screen: every loader, how fast it is, and what is wrong with the data."""

from __future__ import annotations

from typing import IO

from clew.records.data_report import Report
from clew.records.finding import Exhibit, Severity
from clew.records.sample_views import SamplePath, StageLook
from clew.render.data import speed_report
from clew.render.data.field_text import briefly
from clew.render.data.loader_screen import cut_end, draw_look, line_of
from clew.render.images import image_of
from clew.render.number_text import duration, span
from clew.render.run_summary import RunSummary
from clew.render.safe_text import neutral, short_path
from clew.render.screen import Screen
from clew.render.verdict.finding_block import draw_effects, draw_finding, one_line
from clew.render.verdict.root_causes import effects_by_root
from clew.render.verdict.sample_gallery import gallery

INDENT = 2
READ = "read"  # a dataset itself: its input is an index
WIDE = 24  # columns of an image

FULL_ROOTS = 3  # findings drawn in full: more would not fit on one screen


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


def draw_way(screen: Screen, way: SamplePath, name: str) -> None:
    """Stage by stage, each with its time and what it changed."""
    title = screen.text(f"sample {way.index}", "bold")
    screen.block(screen.join(title, f" of {neutral(name, 60)}, stage by stage"))
    if any(stage.random for stage in way.stages):
        screen.block(screen.text(f"random stages ran once, with seed {way.seed}", "dim"), indent=INDENT)
    before = None
    for stage in way.stages:
        screen.blank()
        _draw_stage(screen, stage, before)
        before = stage
    if way.error:
        screen.blank()
        screen.block(screen.text(neutral(way.error), "bold red"), indent=INDENT, label="error", column=9)


def _draw_stage(screen: Screen, stage: StageLook, before: StageLook | None) -> None:
    dot = f" {screen.glyphs.dot} "
    place = f"{short_path(stage.file)}:{stage.line}" if stage.file else ""
    words = [stage.kind, "random" if stage.random else "", place, span(stage.seconds) if stage.kind else ""]
    said = dot.join(word for word in words if word)
    head = screen.join(screen.text(neutral(stage.name, 60), "bold"), said, gap=dot)
    screen.block(head, indent=INDENT)
    inner = INDENT + 2
    if stage.error:
        screen.block(screen.text(neutral(stage.error), "bold red"), indent=inner)
        return
    screen.row(cut_end(_change(screen, stage, before), screen.width - inner), indent=inner)
    if stage.look is None or (
        before is not None and before.look is not None and before.look.data == stage.look.data
    ):
        return
    image = image_of(stage.look.data) if stage.look.kind == "image" else None
    if image is not None:
        for row in gallery(
            screen, [(Exhibit("image", "", stage.look.data), image)], screen.width - inner, WIDE
        ):
            screen.row(row, indent=inner)
    elif stage.made is not None and (stage.made.shape or stage.look.kind == "text"):
        screen.row(line_of(screen, stage.look, screen.width - inner), indent=inner)


def _change(screen: Screen, stage: StageLook, before: StageLook | None) -> str:
    """`28×28 uint8, 0 to 255 → 1×28×28 float32, 0 to 1`."""
    made = briefly(stage.made) if stage.made is not None else "nothing"
    given = briefly(stage.given) if stage.given is not None and stage.kind != READ else ""
    if before is not None and before.made is not None and made == briefly(before.made):
        return f"{made}, unchanged" if stage.kind == READ else f"{made}: same shape and range"
    return made if not given or given == made else f"{given} {screen.glyphs.arrow} {made}"
