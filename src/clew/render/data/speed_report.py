"""How fast a loader is and why: the bottleneck first, then stages, sizes, padding and settings."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from clew.records.loader_speed import (
    FieldSize,
    HotLine,
    MeasuredLoader,
    Paddings,
    Sizes,
    Speeds,
    Stages,
    StageTime,
    Sweep,
)
from clew.records.plural import counted
from clew.render.data.speed_text import (
    count,
    limits,
    moving_line,
    padding_lines,
    rate_rows,
    setup,
    shape,
    sweep_line,
)
from clew.render.number_text import share, size, span
from clew.render.safe_text import neutral, short_path
from clew.render.screen import Screen
from clew.render.text_table import Column, draw_table

INDENT = 2
BAR = 16  # columns of a full bar
STAGES, FIELDS = 10, 8  # lines of each table, unless all are requested
SLOW = 1e-4  # seconds of a sample, below which it does not matter where they go
SIZE_HEADS = ("field", "shape", "type", "bytes", "fits in", "values")
TRIFLE = 0.005  # share below which a stage is not listed by itself


def draw(screen: Screen, measured: MeasuredLoader, *, full: bool = False) -> None:
    """Everything measured about one loader; what was not requested takes no line."""
    if measured.speeds is not None:
        _draw_speeds(screen, measured.loader, measured.speeds)
    if measured.stages is not None and measured.stages.stages:
        _draw_stages(screen, measured.stages, full=full)
    if measured.sizes is not None and measured.sizes.fields:
        _draw_sizes(screen, measured.sizes, full=full)
    if measured.paddings is not None and measured.paddings.fields:
        _draw_paddings(screen, measured.paddings)
    if measured.sweep is not None and measured.sweep.rows:
        _draw_sweep(screen, measured.sweep)
    for part, why in measured.notes.items():
        screen.block(screen.text(f"{part} not measured: {neutral(why)}", "dim"), indent=INDENT)


def _heading(screen: Screen, words: str, rest: str = "") -> None:
    screen.blank()
    screen.block(screen.join(screen.text(words, "bold"), screen.text(f"  {rest}" if rest else "", "dim")))


def _notes(screen: Screen, notes: Sequence[str]) -> None:
    for note in notes:
        screen.block(screen.text(neutral(note), "dim"), indent=INDENT)


def _conclude(screen: Screen, sentence: str) -> None:
    arrow = screen.glyphs.arrow
    screen.block(sentence, indent=INDENT, label=arrow, column=len(arrow) + 1)


def _draw_speeds(screen: Screen, name: str, speeds: Speeds) -> None:
    _heading(screen, "speed", setup(name, speeds))
    columns = (Column("", left=True, flexible=True), Column("samples/s"), Column("spread", drop=1))
    rows = rate_rows(speeds)
    if rows:
        draw_table(screen, columns, rows, indent=INDENT)
    else:
        screen.block("no batch was loaded", indent=INDENT)
    sentence = limits(speeds)
    if sentence:
        _conclude(screen, sentence)
    _notes(screen, speeds.notes)


def _draw_stages(screen: Screen, stages: Stages, *, full: bool) -> None:
    times = f"{span(stages.median)} median, {span(stages.p95)} p95"
    rest = f"{times}, {counted(stages.samples, 'sample')}, one process"
    _heading(screen, "stages of a sample", rest)
    shown = [s for s in stages.stages if full or s.share >= TRIFLE]
    shown = shown if full else _largest(shown, STAGES)
    columns = (
        Column("stage", left=True, flexible=True, least=16),
        Column("kind", left=True, drop=2),
        Column("median"),
        Column("p95", drop=1),
        Column("share"),
        Column("", left=True, drop=3),
    )
    draw_table(screen, columns, [_stage_row(screen, stage) for stage in shown], indent=INDENT)
    left = [stage for stage in stages.stages if stage not in shown]
    if left:
        rest = f"and {len(left)} more, {share(sum(stage.share for stage in left))} in total"
        screen.block(screen.text(rest, "dim"), indent=INDENT)
    slowest = max(stages.stages, key=lambda stage: stage.share)
    if slowest.file is not None and stages.median >= SLOW:
        where = f"{neutral(slowest.name, 60)} is defined at {_place(slowest.file, slowest.line)}"
        screen.block(screen.text(where, "dim"), indent=INDENT)
    for line in stages.lines[:3]:
        _draw_line(screen, line)
    _notes(screen, stages.notes)


def _largest(stages: Sequence[StageTime], most: int) -> list[StageTime]:
    """Only the largest if there are too many, in their original order."""
    kept = sorted(stages, key=lambda stage: -stage.share)[:most]
    return [stage for stage in stages if stage in kept]


def _stage_row(screen: Screen, stage: StageTime) -> list[str]:
    bar = screen.glyphs.block * round(BAR * min(stage.share, 1.0))
    return [neutral(stage.name, 60), stage.kind, span(stage.median), span(stage.p95), share(stage.share), bar]


def _draw_line(screen: Screen, line: HotLine) -> None:
    head = f"{share(line.share):>5} on {neutral(Path(line.file).name, 40)}:{line.line}  "
    screen.line(screen.text(" " * INDENT + head, "dim"), neutral(line.code, 120))


def _place(file: str, line: int | None) -> str:
    return f"{neutral(short_path(file), 100)}:{line}"


def _draw_sizes(screen: Screen, sizes: Sizes, *, full: bool) -> None:
    largest = f", largest {size(sizes.largest)}" if sizes.largest > 1.05 * sizes.bytes else ""
    _heading(
        screen,
        "size of a sample",
        f"{size(sizes.bytes)}{largest}, {counted(sizes.samples, 'sample')}",
    )
    columns = (
        Column("field", left=True, flexible=True, least=8),
        Column("shape", left=True),
        Column("type", left=True),
        Column("bytes"),
        Column("fits in", left=True),
        Column("values", left=True, drop=1),
    )
    shown = sizes.fields if full else sizes.fields[:FIELDS]
    draw_table(screen, columns, [_field_row(field) for field in shown], indent=INDENT)
    if len(shown) < len(sizes.fields):
        screen.block(screen.text(f"and {len(sizes.fields) - len(shown)} more", "dim"), indent=INDENT)
    if sizes.moving is not None:
        screen.block(moving_line(sizes.moving, sizes.workers), indent=INDENT)
    _notes(screen, sizes.notes)


def _field_row(field: FieldSize) -> list[str]:
    fits = f"{field.fits}, {size(field.fits_bytes)}" if field.fits else ""
    named = [neutral(field.field, 40), shape(field.shape), neutral(field.dtype, 30)]
    return [*named, size(field.bytes), fits, neutral(field.how, 60)]


def _draw_paddings(screen: Screen, paddings: Paddings) -> None:
    _heading(screen, "padding", f"{paddings.fields[0].batches} batches")
    columns = (
        Column("field", left=True, flexible=True, least=8),
        Column("lengths", left=True, drop=2),
        Column("padded to"),
        Column("padding"),
        Column("by batch", drop=1),
        Column("to the longest"),
        Column("similar lengths"),
    )
    rows = [
        [
            neutral(one.field, 40),
            f"{one.shortest_length} to {one.longest_length}, median {one.median_length:.0f}",
            f"{one.padded_to:.0f}",
            share(one.share),
            f"{share(one.low)} to {share(one.high)}",
            share(one.longest),
            share(one.bucketed),
        ]
        for one in paddings.fields
    ]
    draw_table(screen, columns, rows, indent=INDENT)
    for line in padding_lines(paddings):
        _conclude(screen, line)
    _notes(screen, paddings.notes)


def _draw_sweep(screen: Screen, sweep: Sweep) -> None:
    what = "loader and training step alternating" if sweep.with_step else "loader alone"
    _heading(screen, "settings tried", f"{what}, {counted(sweep.cores, 'core')}, {span(sweep.seconds)}")
    columns = (
        Column("workers"),
        Column("prefetch"),
        Column("samples/s"),
        Column("spread", drop=1),
        Column("memory", drop=2),
        Column("", left=True, flexible=True, least=4),
    )
    draw_table(screen, columns, sweep_rows(sweep, screen.glyphs.dash), indent=INDENT)
    _conclude(screen, sweep_line(sweep))
    _notes(screen, sweep.notes)


def sweep_rows(sweep: Sweep, dash: str) -> list[list[str]]:
    """Every setting with a remark: the best, the program's own, or why it could not be tried."""
    rows = []
    for row in sweep.rows:
        marks = ["best"] if row == sweep.best else []
        marks += ["now"] if row == sweep.now else []
        rate = row.rate
        rows.append(
            [
                str(row.workers),
                str(row.prefetch) if row.prefetch else dash,
                count(rate.median) if rate is not None else dash,
                f"{count(rate.low)} to {count(rate.high)}" if rate is not None else "",
                size(row.memory) if row.memory else "",
                ", ".join(marks) or neutral(row.error, 100),
            ]
        )
    return rows


# -- HTML --

STYLE = (
    ".clew-speed table{border-collapse:collapse;margin:.4em 0}.clew-speed td,.clew-speed th{padding:2px 10px;"
    "text-align:right;border-top:1px solid #8884;font-weight:inherit}.clew-speed td:first-child,"
    ".clew-speed th:first-child{text-align:left}.clew-speed th{opacity:.65;border:0}.clew-speed i{display:"
    "inline-block;height:.75em;background:#0b6bcb}.clew-speed .best{font-weight:600}"
    ".clew-speed .dim{opacity:.65}"
)


def fragment(measured: MeasuredLoader) -> str:
    """The same as a piece of HTML with inline style."""
    parts = [f"<style>{STYLE}</style>"]
    if measured.speeds is not None:
        parts += _html_speeds(measured.loader, measured.speeds)
    if measured.stages is not None and measured.stages.stages:
        parts += _html_stages(measured.stages)
    if measured.sizes is not None and measured.sizes.fields:
        rows = [_cells(_field_row(field)) for field in measured.sizes.fields]
        parts.append(_table("size of a sample", SIZE_HEADS, rows))
        if measured.sizes.moving is not None:
            parts.append(_paragraph(moving_line(measured.sizes.moving, measured.sizes.workers)))
    if measured.paddings is not None:
        parts += [_paragraph(line) for line in padding_lines(measured.paddings)]
    if measured.sweep is not None and measured.sweep.rows:
        parts += _html_sweep(measured.sweep)
    parts += [_paragraph(f"{part} not measured: {why}", "dim") for part, why in measured.notes.items()]
    return f'<div class="clew-speed">{"".join(parts)}</div>'


def _html_speeds(name: str, speeds: Speeds) -> list[str]:
    title = f"speed of {setup(name, speeds)}"
    rows = [_cells(row) for row in rate_rows(speeds)]
    table = _table(title, ("", "samples/s", "spread"), rows)
    return [table, *_remarks(limits(speeds), speeds.notes)]


def _remarks(sentence: str, notes: Sequence[str]) -> list[str]:
    first = [_paragraph(sentence)] if sentence else []
    return [*first, *(_paragraph(note, "dim") for note in notes)]


def _html_stages(stages: Stages) -> list[str]:
    rows = []
    for stage in stages.stages:
        where = f' title="{_text(_place(stage.file, stage.line))}"' if stage.file else ""
        bar = f'<i style="width:{100 * min(stage.share, 1):.0f}px"></i>'
        numbers = _cells([stage.kind, span(stage.median), span(stage.p95), share(stage.share)])
        rows.append(f"<td{where}>{_text(stage.name)}</td>{numbers}<td>{bar}</td>")
    title = f"stages of a sample, {span(stages.median)} median, {span(stages.p95)} p95"
    lines = [
        _paragraph(f"{share(line.share)} on {_place(line.file, line.line)}  {line.code}", "dim")
        for line in stages.lines
    ]
    return [_table(title, ("stage", "kind", "median", "p95", "share", ""), rows), *lines]


def _html_sweep(sweep: Sweep) -> list[str]:
    heads = ("workers", "prefetch", "samples/s", "spread", "memory", "")
    rows = []
    for row, cells in zip(sweep.rows, sweep_rows(sweep, "–"), strict=True):
        body = _cells(cells)
        rows.append(body.replace("<td>", '<td class="best">') if row == sweep.best else body)
    return [_table("settings tried", heads, rows), *_remarks(sweep_line(sweep), sweep.notes)]


def _table(title: str, heads: Sequence[str], rows: Sequence[str]) -> str:
    head = "".join(f"<th>{_text(one)}</th>" for one in heads)
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f"<p><b>{_text(title)}</b></p><table><tr>{head}</tr>{body}</table>"


def _cells(values: Sequence[str]) -> str:
    return "".join(f"<td>{_text(value)}</td>" for value in values)


def _paragraph(words: str, style: str = "") -> str:
    kind = f' class="{style}"' if style else ""
    return f"<p{kind}>{_text(words)}</p>"


def _text(words: str) -> str:
    return escape(neutral(words))
