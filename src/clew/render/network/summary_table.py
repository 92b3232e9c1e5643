"""A network as a table: the module tree in execution order, with totals below."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO

from clew.records.finding import Finding
from clew.records.network import ModuleRow, Statistics, Summary
from clew.render.network.shape_error_text import render_shape_error
from clew.render.number_text import count, short, size
from clew.render.safe_text import ELLIPSIS, cut, neutral
from clew.render.screen import STYLES, Screen
from clew.render.verdict.finding_block import layer, location

INDENT = 2

COLUMN = 12  # of the labels beneath the table
UNUSED = "unused-parameter"  # which says the same, and where
SHAPE = 0  # the column that wraps


@dataclass(frozen=True)
class SummaryColumn:
    """What is shown for each row; columns that don't fit are dropped, the highest rank first."""

    title: str
    value: Callable[[ModuleRow], str]
    rank: int
    right: bool = True
    widest: int = 60


def render_summary(
    summary: Summary,
    *,
    stream: IO[str] | None = None,
    width: int | None = None,
    depth: int | None = None,
    expand: bool = False,
) -> None:
    """Draw it; `expand` draws repeated blocks one by one, `depth` limits the levels of the tree."""
    screen = Screen(stream, width)
    rows = [r for r in summary.rows if (expand or not r.hidden) and (depth is None or r.depth <= depth)]
    _draw_title(screen, summary)
    _draw_rows(screen, summary, rows, expand)
    screen.rule()
    _draw_sums(screen, summary, any(r.repeat > 1 for r in rows) and not expand)
    draw_findings(screen, summary.findings)
    if summary.shape_error is not None:
        screen.blank()
        render_shape_error(summary.shape_error, stream=stream, width=width)


def _draw_title(screen: Screen, summary: Summary) -> None:
    times = screen.glyphs.times
    arrow = f" {screen.glyphs.arrow} "
    given = ", ".join(
        f"{'' if name == 'input' else neutral(name, 30) + ' '}{t.text(times)} {t.dtype}"
        for name, t in summary.inputs
    )
    results = ", ".join(t.text(times) for t in summary.outputs[:4])
    more = f" and {len(summary.outputs) - 4} more" if len(summary.outputs) > 4 else ""
    flow = arrow.join(part for part in (given, results + more) if part)
    screen.block(screen.join(screen.text(neutral(summary.name, 60), "bold"), neutral(flow), gap="  "))


def _columns(summary: Summary, screen: Screen) -> list[SummaryColumn]:
    times = screen.glyphs.times
    idle = "not used" if summary.shape_error is None else "not reached"
    columns = [
        SummaryColumn("output", lambda r: _output(r, times, idle), 1, right=False, widest=160),
        SummaryColumn("parameters", _parameters, 0),
        SummaryColumn("FLOPs", lambda r: short(r.flops) if r.flops else "", 2),
        SummaryColumn("kept", lambda r: size(r.saved) if r.saved else "", 3),
    ]
    if len({r.dtype for r in summary.rows if r.dtype}) > 1:
        columns.append(SummaryColumn("dtype", lambda r: r.dtype, 5, right=False))
    if len({r.device for r in summary.rows if r.device}) > 1:
        columns.append(SummaryColumn("device", lambda r: r.device, 4, right=False))
    return columns


def _output(row: ModuleRow, times: str, idle: str) -> str:
    if not row.ran:
        return idle
    if not row.outputs:
        return "–"
    more = f" +{len(row.outputs) - 1}" if len(row.outputs) > 1 else ""
    return row.outputs[0].text(times) + more


def _parameters(row: ModuleRow) -> str:
    if row.parameters:
        return count(row.parameters) + (" *" if not row.trainable else "")
    return "shared" if row.shared else ""


def _name(
    row: ModuleRow, parents: dict[int, str], expand: bool, root: str, times: str
) -> tuple[str, str, str]:
    """Its indent, the path below its parent's, its repetitions or call number, and its class."""
    above = parents.get(row.depth - 1, "")
    label = row.path.removeprefix(f"{above}.") if above else row.path
    repeat = f" {times}{row.repeat}" if row.repeat > 1 and not expand else ""
    again = f" (call {row.call})" if row.call > 1 else ""
    kind = f"  {row.kind}" if label else ""
    return "  " * row.depth, neutral(f"{label or root}{repeat}{again}", 60), neutral(kind, 40)


def _draw_rows(screen: Screen, summary: Summary, rows: Sequence[ModuleRow], expand: bool) -> None:
    columns = _columns(summary, screen)
    times = screen.glyphs.times
    names, parents = [], dict[int, str]()
    for row in rows:
        names.append(_name(row, parents, expand, summary.name, times))
        parents[row.depth] = row.path
    cells = [[cut(neutral(c.value(row)), c.widest) for c in columns] for row in rows]
    longest = max([len("module"), *(sum(map(len, name)) for name in names)])
    widths, fit = _fit(screen, longest, cells, columns)
    if fit.shape < widths[SHAPE]:
        for line in cells:
            line[SHAPE] = line[SHAPE].replace(f" {times} ", times)
        widths, fit = _fit(screen, longest, cells, columns)
    widths[SHAPE] = fit.shape
    screen.line(screen.text(_line("module", [c.title for c in columns], fit, widths, columns), "dim"))
    for name, row, line in zip(names, rows, cells, strict=True):
        first, *more = wrapped(line[SHAPE], times, fit.shape)
        line[SHAPE] = first
        texts = [_line(short_name(*name, fit.name), line, fit, widths, columns)]
        texts += [" " * (fit.name + GAP) + part for part in more]
        for text in texts:
            screen.line(screen.text(text, "" if row.ran else "yellow"))
        _draw_statistics(screen, row)
    if fit.gone:
        lost = ", ".join(columns[i].title for i in fit.gone)
        screen.block(screen.text(f"no room for {lost}: use a wider terminal, or --json", "dim"))


def _fit(
    screen: Screen, name: int, cells: list[list[str]], columns: list[SummaryColumn]
) -> tuple[list[int], Fit]:
    widths = [max([len(c.title), *(len(r[i]) for r in cells)]) for i, c in enumerate(columns)]
    return widths, fitted(screen.width, name, widths, SHAPE, [c.rank for c in columns])


def _line(name: str, cells: list[str], fit: Fit, widths: list[int], columns: list[SummaryColumn]) -> str:
    parts = [name.ljust(fit.name)]
    for i in fit.shown:
        parts.append(cells[i].rjust(widths[i]) if columns[i].right else cells[i].ljust(widths[i]))
    return (" " * GAP).join(parts)


def _draw_statistics(screen: Screen, row: ModuleRow) -> None:
    indent = "  " * (row.depth + 1)
    for label, stats in (("data", row.data), ("grad", row.gradient)):
        if stats is not None:
            style = "red" if stats.nonfinite else "dim"
            screen.line(screen.text(f"{indent}{label}  {_statistics(stats)}", style))


def _statistics(stats: Statistics) -> str:
    """`0.01 ±0.98, median 0, -3.1 … 3.3`, and what was not finite."""
    bad = f", {stats.nonfinite:,} non-finite" if stats.nonfinite else ""
    middle = f"{stats.mean:.3g} ±{stats.std:.3g}, median {stats.median:.3g}"
    return f"{middle}, {stats.min:.3g} … {stats.max:.3g}{bad}"


def _draw_sums(screen: Screen, summary: Summary, folded: bool) -> None:
    memory = summary.memory
    frozen = f", {count(summary.frozen)} of them frozen *" if summary.frozen else ""
    every = f"{summary.parameters:,} ({size(memory.parameters)}){frozen}"
    _draw(screen, "parameters", every)
    if summary.flops:
        _draw(screen, "forward", f"{short(summary.flops, 'FLOPs')}; a multiply-add counts as two")
    parts = [
        ("parameters", memory.parameters),
        ("gradients", memory.gradients),
        (memory.optimizer_name, memory.optimizer),
        ("kept for backward", memory.activations),
        ("buffers", memory.buffers),
    ]
    sums = " + ".join(f"{size(n)} {name}" for name, n in parts if n)
    _draw(screen, "training", f"{size(memory.total)} = {sums}")
    if summary.dims:
        _draw(screen, "traced at", ", ".join(f"{name} = {n}" for name, n in summary.dims))
    if folded:
        times = screen.glyphs.times
        _draw(screen, "", f"{times}N: N identical blocks in a row, shown once; the numbers are for one")
    idle = [r for r in summary.rows if not r.ran]
    if idle and summary.shape_error is None and not any(f.check == UNUSED for f in summary.findings):
        unused = sum(r.parameters for r in idle)
        where = f"{len(idle)} modules were" if len(idle) > 1 else f"{neutral(idle[0].path, 60)} were"
        text = f"the {count(unused)} parameters of {where} not used in this forward"
        screen.block(screen.text(text, "yellow"), label="note", column=COLUMN)
    for note in summary.notes:
        screen.block(screen.text(neutral(note), "yellow"), label="note", column=COLUMN)


def _draw(screen: Screen, label: str, text: str) -> None:
    screen.block(neutral(text), label=label, column=COLUMN)


def draw_findings(screen: Screen, findings: Sequence[Finding]) -> None:
    """Name and severity, what is wrong, where, and the fix; nothing for a healthy network."""
    for finding in findings:
        screen.blank()
        style = STYLES[finding.severity.value]
        mark = screen.text(f"{screen.glyphs.mark(finding.severity)} {finding.check}", style)
        screen.line(mark, screen.text(f"  {finding.severity.value}", "dim"))
        place = location(finding.site) or layer(finding.site)
        where = f" ({place})" if place else ""
        screen.block(neutral(finding.message) + where, indent=INDENT)
        screen.block(f"fix: {neutral(finding.fix)}", indent=INDENT)
    if findings:
        screen.blank()
        one = findings[0].check if len(findings) == 1 else "NAME"
        screen.block(screen.text(f"more: clew explain {one}", "dim"))


# ---- widths ----------------------------------------------------------------------------------

GAP = 2
NAME_SHARE = 0.5  # of the width, at most, for the module tree
LEAST_NAME, LEAST_SHAPE = 20, 16  # columns below which neither is readable
SHORTEST_KIND = 6  # of a class name, before the module's own name is cut


@dataclass(frozen=True)
class Fit:
    """Widths of the name, of the wrapping column and of those shown; and what was dropped."""

    name: int
    shape: int
    shown: list[int]
    gone: list[int]


def fitted(width: int, name: int, widths: Sequence[int], wraps: int, ranks: Sequence[int]) -> Fit:
    """`widths` are the columns' own; number `wraps` may be narrower; the highest rank is dropped first."""
    shown, gone = list(range(len(widths))), list[int]()
    while True:
        others = sum(widths[i] + GAP for i in shown if i != wraps)
        room = width - others - GAP
        name_least, shape_least = min(name, LEAST_NAME), min(widths[wraps], LEAST_SHAPE)
        if name_least + shape_least <= room or len(shown) == 1:
            break
        lost = max((i for i in shown if i != wraps), key=lambda i: ranks[i])
        shown.remove(lost)
        gone.append(lost)
    shape = min(widths[wraps], max(room - min(name, int(width * NAME_SHARE)), shape_least))
    return Fit(max(min(name, room - shape, int(width * NAME_SHARE)), name_least), shape, shown, sorted(gone))


def short_name(indent: str, head: str, kind: str, width: int) -> str:
    """The class is cut before the name, and a name at its start: `…decoder.layers.0`."""
    room = width - len(indent) - len(head)
    if len(kind) <= room or not kind:
        whole = f"{indent}{head}{kind}"
        return whole if len(whole) <= width else _tail(indent, head, width)
    if room >= 2 + SHORTEST_KIND:
        return f"{indent}{head}{cut(kind, room)}"
    return f"{indent}{head}" if room >= 0 else _tail(indent, head, width)


def _tail(indent: str, head: str, width: int) -> str:
    indent = indent[: max(width - 12, 0)]
    return f"{indent}{ELLIPSIS}{head[-max(width - len(indent) - 1, 1) :]}"


def wrapped(shape: str, times: str, width: int) -> list[str]:
    """A long shape on several lines, each later one beginning with the sign between two sizes."""
    if len(shape) <= width:
        return [shape]
    between = f" {times} " if f" {times} " in shape else times
    first, *others = shape.split(between)
    lines = [first]
    for extent in others:
        longer = f"{lines[-1]}{between}{extent}"
        if len(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(f"{times}{' ' if len(between) > 1 else ''}{extent}")
    return [cut(line, width) for line in lines]
