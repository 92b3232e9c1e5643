"""`clew data` on one screen: every loader, how fast it is, and what is wrong with the data."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import IO

from rich.text import Text

from clew.records.data_report import Report
from clew.records.finding import Exhibit
from clew.records.json_values import numbers
from clew.records.plural import counted
from clew.records.sample_views import LoaderView, SamplePath, StageView, ValueView
from clew.render.data import speed_report, survey_report
from clew.render.data.field_text import briefly, field_lines, loader_words, stage_words
from clew.render.images import Image, image_of
from clew.render.number_text import duration, number, span
from clew.render.run_summary import RunSummary
from clew.render.safe_text import cut, neutral
from clew.render.screen import Screen
from clew.render.sparkline import sparkline
from clew.render.verdict.finding_block import draw_findings
from clew.render.verdict.sample_gallery import gallery, rows_of_numbers

INDENT, COLUMN = 2, 9
READ = "read"  # a dataset itself: its input is an index
WIDE = 24  # columns of the image of a stage
SMALLEST, LARGEST = 12, 20  # columns of an image of a row
AT_MOST = 8  # images in a row
WAVE = 40


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
    loaders = counted(len(report.loaders), "loader") if report.loaders else "no loader"
    dot = f" {screen.glyphs.dot} "
    words = [neutral(report.what, 60), loaders, duration(report.seconds)]
    screen.block(screen.join(screen.text("clew data  ", "bold"), dot.join(word for word in words if word)))


def _draw_ways(screen: Screen, report: Report) -> None:
    for shown in report.loaders:
        if shown.way is not None:
            screen.blank()
            draw_way(screen, shown.way, shown.name)


def _draw_loaders(screen: Screen, report: Report, full: bool) -> None:
    for n, shown in enumerate(report.loaders):
        screen.blank()
        draw_loader(screen, shown, brief=n > 0 and not full)
        for measured in report.measured_of(shown):
            speed_report.draw(screen, measured, full=full)
    if report.surveys:
        survey_report.draw(screen, report.surveys, report.betweens, full=full)


def summary_of(report: Report) -> RunSummary:
    """A run for the findings to refer to."""
    checks = report.verdict.asked
    return RunSummary(id="data", path="", script=report.what, state="finished", steps=0, checks=checks)


def _draw_findings(screen: Screen, report: Report, full: bool) -> None:
    draw_findings(screen, report.findings, summary_of(report), full=full)
    if not report.findings and report.verdict.asked:
        screen.blank()
        judged = len(report.verdict.ruled_out)
        good = screen.text(f"{screen.glyphs.good} no problems found", "bold green")
        screen.block(screen.join(good, f" ({counted(judged, 'data check')})"))


# -- one loader: its settings, and its samples next to what the model gets --


def draw_loader(screen: Screen, shown: LoaderView, *, brief: bool = False) -> None:
    """The whole block of a loader; `brief` leaves out what is the same as for the previous one."""
    _draw_loader_title(screen, shown)
    if shown.stages and not brief:
        arrow = f" {screen.glyphs.arrow} "
        _row(screen, "path", arrow.join(neutral(name, 40) for name in shown.stages))
    if not brief:
        _draw_samples(screen, shown)
        _draw_fields(screen, shown)
    for n, remark in enumerate(shown.remarks):
        _row(screen, "" if n else "note", neutral(remark))
    for note in shown.notes:
        _row(screen, "not seen", neutral(note), "yellow")


def _row(screen: Screen, label: str, text: str, style: str = "") -> None:
    screen.block(screen.text(text, style), indent=INDENT, label=label, column=COLUMN)


def _draw_loader_title(screen: Screen, shown: LoaderView) -> None:
    dot = f" {screen.glyphs.dot} "
    head = screen.text(neutral(shown.name, 60), "bold")
    screen.block(screen.join(head, "  ", dot.join(loader_words(shown))))


def _draw_fields(screen: Screen, shown: LoaderView) -> None:
    """Shapes, types and ranges: of a sample, of a batch, of what the model gets."""
    lines = field_lines(shown)
    wide = min(max((len(name) for _, name, _ in lines), default=0), 16) + 2
    last = ""
    for label, name, words in lines:
        text = f"{cut(neutral(name, 60), wide - 2).ljust(wide)}{words}"
        screen.row(
            cut_end(text, screen.width - INDENT - COLUMN),
            indent=INDENT,
            label="" if label == last else label,
            column=COLUMN,
        )
        last = label


def cut_end(text: str, room: int) -> str:
    return text if len(text) <= room else text[: room - 1] + "…"


def _draw_samples(screen: Screen, shown: LoaderView) -> None:
    pairs = _pairs(shown)
    for view in shown.samples:
        if view.error:
            _row(screen, "", f"{view.title} could not be read: {neutral(view.error)}", "red")
    if any(_image(view) is not None for view in (*shown.samples, *shown.rows)):
        _draw_pictures(screen, shown, pairs)
    else:
        _draw_lines(screen, shown, pairs)


def _pairs(shown: LoaderView) -> list[tuple[ValueView | None, ValueView | None]]:
    """A sample and its row in the batch; if rows can't be matched, one after the other."""
    samples = [s for s in shown.samples if not s.error]
    rows: dict[int | None, ValueView] = {r.index: r for r in shown.rows if r.index is not None}
    if not samples:
        return [(None, row) for row in shown.rows]
    return [(sample, rows.get(sample.index)) for sample in samples]


def _image(view: ValueView | None) -> Image | None:
    return image_of(view.data) if view is not None and view.kind == "image" else None


def same(pairs: Sequence[tuple[ValueView | None, ValueView | None]]) -> bool:
    """Whether the model gets what the dataset returns."""
    return all(a is not None and b is not None and (a.kind, a.data) == (b.kind, b.data) for a, b in pairs)


def _draw_pictures(
    screen: Screen, shown: LoaderView, pairs: Sequence[tuple[ValueView | None, ValueView | None]]
) -> None:
    room = screen.width - INDENT - COLUMN
    across = max(min(len(pairs), AT_MOST, (room + 2) // (SMALLEST + 2)), 1)
    wide = min(LARGEST, (room + 2) // across - 2)
    alike = bool(pairs) and same(pairs)
    if len(pairs) <= AT_MOST:
        pairs = pairs[:across]  # one row is enough to see what they are; more were not requested
    for first in range(0, len(pairs), across):
        some = pairs[first : first + across]
        firsts, seconds = [a for a, _ in some], [b for _, b in some]
        name = "both" if alike else "dataset"
        _draw_row(screen, name, firsts, room, wide)
        if not alike:
            _draw_row(screen, shown.rows_of, seconds, room, wide)
    if shown.samples and shown.rows and not any(b for _, b in pairs):
        rows = list(shown.rows[:across])
        _draw_row(screen, shown.rows_of, rows, room, wide)


def _draw_row(screen: Screen, label: str, views: Sequence[ValueView | None], room: int, wide: int) -> None:
    pictures = [(_captioned(view), image) for view in views if view is not None and (image := _image(view))]
    for n, row in enumerate(gallery(screen, pictures, room, wide)):
        screen.row(row, indent=INDENT, label="" if n else label, column=COLUMN)


def _captioned(view: ValueView) -> Exhibit:
    title = view.title.removeprefix("sample ")
    return Exhibit(view.kind, f"{title}: {view.label}" if view.label else title, view.data)


def _draw_lines(
    screen: Screen, shown: LoaderView, pairs: Sequence[tuple[ValueView | None, ValueView | None]]
) -> None:
    """Text, waveforms and numbers: a line for each sample, and one below if the model gets something else."""
    room = screen.width - INDENT - COLUMN
    views = [view for pair in pairs for view in pair if view is not None]
    wide = max((len(_head(view)) for view in views), default=0) + 2
    arrow = screen.glyphs.arrow
    for a, b in pairs:
        first = a if a is not None else b
        if first is None:
            continue
        label = neutral(first.title.removeprefix("sample "), COLUMN - 1)
        line = f"{_head(first).ljust(wide)}{line_of(screen, first, room - wide)}"
        screen.row(screen.text(line), indent=INDENT, label=label, column=COLUMN)
        if a is not None and b is not None and (a.kind, a.data) != (b.kind, b.data):
            text = f"{arrow} {shown.rows_of}".ljust(wide)
            screen.row(f"{text}{line_of(screen, b, room - len(text))}", indent=INDENT, column=COLUMN)


def _head(view: ValueView) -> str:
    return neutral(view.label, 24)


def value_rows(screen: Screen, view: ValueView, room: int, wide: int) -> Sequence[str | Text]:
    """An image of up to `wide` columns, or one line."""
    image = _image(view)
    if image is None:
        return [line_of(screen, view, room)]
    return gallery(screen, [(Exhibit("image", "", view.data), image)], room, wide)


def line_of(screen: Screen, view: ValueView, room: int) -> str:
    """One line that fits."""
    if view.kind == "text":
        return cut_end(neutral(str(view.data), 4 * room), room)
    if view.kind == "wave":
        values = numbers(view.data)
        rate = f"  {view.rate:,} Hz" if view.rate else ""
        peak = max((abs(v) for v in values), default=0.0)
        drawn = sparkline(_envelope(values, min(WAVE, room - 30)), WAVE, plain=screen.glyphs.plain)
        return f"{drawn}  peak {number(peak)}{rate}"
    if view.kind == "image":
        return "an image"
    return rows_of_numbers(view.data, room)[0] if view.data else ""


def _envelope(values: Sequence[float], width: int) -> list[float]:
    """The largest absolute value of every stretch."""
    count = max(min(width, len(values)), 1)
    edges = [n * len(values) // count for n in range(count + 1)]
    return [max((abs(v) for v in values[a:b]), default=0.0) for a, b in pairwise(edges)]


# -- one sample, stage by stage --


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


def _draw_stage(screen: Screen, stage: StageView, before: StageView | None) -> None:
    dot = f" {screen.glyphs.dot} "
    words = [*stage_words(stage), *([span(stage.seconds)] if stage.kind else [])]
    head = screen.join(screen.text(neutral(stage.name, 60), "bold"), dot.join(words), gap=dot)
    screen.block(head, indent=INDENT)
    inner = INDENT + 2
    if stage.error:
        screen.block(screen.text(neutral(stage.error), "bold red"), indent=inner)
        return
    screen.row(cut_end(_change(screen, stage, before), screen.width - inner), indent=inner)
    view = stage.view
    if view is None or not stage.differs_from(before):
        return
    if _image(view) or (stage.made is not None and (stage.made.shape or view.kind == "text")):
        for row in value_rows(screen, view, screen.width - inner, WIDE):
            screen.row(row, indent=inner)


def _change(screen: Screen, stage: StageView, before: StageView | None) -> str:
    """`28×28 uint8, 0 to 255 → 1×28×28 float32, 0 to 1`."""
    made = briefly(stage.made) if stage.made is not None else "nothing"
    given = briefly(stage.given) if stage.given is not None and stage.kind != READ else ""
    if before is not None and before.made is not None and made == briefly(before.made):
        return f"{made}, unchanged" if stage.kind == READ else f"{made}: same shape and range"
    return made if not given or given == made else f"{given} {screen.glyphs.arrow} {made}"
