"""Speed-ups tried on a snapshot, and the batch-size sweep, as tables in the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO

from clew.records.tried_changes import BatchSizes, Break, SizeRow, TriedChange
from clew.render.number_text import duration, number, size
from clew.render.safe_text import cut, neutral, short_path
from clew.render.screen import Screen

INDENT = 2
BAR = 12  # columns of the largest throughput
BREAKS = 5  # that are named
BUSY = 0.1  # noise, as a share of the step, from which it is reported


def render_tried(
    attempts: Sequence[TriedChange], sizes: BatchSizes | None, *, stream: IO[str] | None = None
) -> None:
    """Everything that a run has tried, as shown at its end."""
    if sizes is not None:
        render_batch_sizes(sizes, stream=stream)
    if attempts:
        render_attempts(attempts, stream=stream)


# ---- attempts ------------------------------------------------------------------------------


def render_attempts(
    attempts: Sequence[TriedChange], *, stream: IO[str] | None = None, width: int | None = None
) -> None:
    """A line for each change, the best first; then the remarks on it."""
    screen = Screen(stream, width)
    tried = sorted((a for a in attempts if a.tried), key=lambda a: (not a.helps, -a.gain))
    screen.blank()
    if tried:
        screen.block(screen.join(screen.text("tested on a snapshot  ", "bold"), _summary(tried)))
    for attempt in tried:
        _draw_attempt(screen, attempt)
    reasons: dict[str, list[TriedChange]] = {}
    for attempt in attempts:
        if not attempt.tried:
            reasons.setdefault(attempt.reason, []).append(attempt)
    for reason, alike in reasons.items():
        _draw_reason(screen, reason, alike)


def _draw_attempt(screen: Screen, attempt: TriedChange) -> None:
    helps = attempt.helps
    mark = screen.glyphs.good if helps else screen.glyphs.dash.ljust(len(screen.glyphs.good))
    times = f"{_seconds(attempt.before)} {screen.glyphs.arrow} {_seconds(attempt.after)}"
    gain = _gain(attempt)
    room = screen.width - INDENT - len(mark) - 1 - 20 - 18
    name = cut(neutral(attempt.setting or attempt.name, 100), max(room, 12)).ljust(max(room, 12))
    style = "green" if helps else "dim"
    row = screen.join(
        screen.text(f"{mark} {name}", style), times.rjust(20), screen.text(gain.rjust(18), style)
    )
    screen.row(row, indent=INDENT)
    for remark in _remarks(attempt):
        screen.block(screen.text(remark, "dim"), indent=INDENT + len(mark) + 1)
    for one in attempt.breaks[:BREAKS]:
        screen.block(f"graph break: {_break(one)}", indent=INDENT + len(mark) + 1)
    rest = len(attempt.breaks) - BREAKS
    if rest > 0:
        screen.block(f"and {rest} more", indent=INDENT + len(mark) + 1)


def _summary(tried: Sequence[TriedChange]) -> str:
    best = next((a for a in tried if a.helps and a.what == "step"), None)
    if best is None:
        return "nothing makes the step clearly faster"
    return f"the step is {best.faster:.2f}x as fast with {neutral(best.setting or best.name, 60)}"


def _gain(attempt: TriedChange) -> str:
    if not attempt.clear:
        return f"unclear (±{attempt.noise:.0%})" if BUSY < attempt.noise < 10 else "no clear change"
    if attempt.gain <= -1:
        return f"{number(1 - attempt.gain)}x slower"
    return f"{abs(attempt.gain):.0%} {'less' if attempt.gain > 0 else 'more'} time"


def _remarks(attempt: TriedChange) -> list[str]:
    found = []
    if attempt.what == "evaluation":
        found.append("measured on an evaluation forward")
    if attempt.once >= 0.1 and attempt.clear and attempt.gain > 0:
        steps = attempt.pays_after
        paid = f", pays off after {steps:,.0f} steps" if steps is not None else ""
        found.append(f"compiling takes {duration(attempt.once)}{paid}")
    elif attempt.once >= 0.1:
        found.append(f"compiling takes {duration(attempt.once)}")
    if attempt.same is False or (attempt.same is None and attempt.difference):
        differences = ", ".join(f"{neutral(k, 20)} {v:.1e}" for k, v in attempt.difference.items())
        word = "results are NOT the same" if attempt.same is False else "results differ"
        found.append(f"{word}, relative: {differences}")
    elif attempt.same and attempt.clear and attempt.gain > 0:
        found.append("same results, up to rounding")
    return found


def _break(one: Break) -> str:
    where = f"{neutral(short_path(one.file), 60)}:{one.line} " if one.file else ""
    code = f" ({neutral(one.code, 60)})" if one.code else ""
    return f"{where}{neutral(one.reason, 120)}{code}"


def _draw_reason(screen: Screen, reason: str, alike: Sequence[TriedChange]) -> None:
    mark = screen.glyphs.dash.ljust(len(screen.glyphs.good))
    names = ", ".join(neutral(a.setting or a.name, 60).rstrip(":") for a in alike)
    before = f"{names}: not tested: " if names else "nothing could be tested: "
    screen.block(f"{before}{neutral(reason, 240)}", indent=INDENT, label=mark, column=len(mark) + 1)
    hint = alike[0].rest.get("hint")
    if isinstance(hint, str) and hint:
        screen.block(screen.text(neutral(hint, 200), "green"), indent=INDENT, label="to do", column=7)


def _seconds(value: float) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e-3)):
        if value >= 0.9995 * factor:
            return f"{value / factor:.3g} {unit}"
    return f"{value / 1e-6:.3g} µs"


# ---- batch sizes ---------------------------------------------------------------------------


def render_batch_sizes(sizes: BatchSizes, *, stream: IO[str] | None = None, width: int | None = None) -> None:
    """The knee, and a row for each size, with a bar for its throughput."""
    screen = Screen(stream, width)
    screen.blank()
    screen.block(screen.join(screen.text("batch sizes  ", "bold"), _knee(sizes)))
    if sizes.hint:
        screen.block(screen.text(neutral(sizes.hint, 200), "green"), indent=INDENT, label="to do", column=7)
    if any(row.measured for row in sizes.rows):
        screen.row(screen.text(_cells("size", "samples/s", "", "step", "tensors", "process"), "dim"))
    for row in sizes.rows:
        _draw_row(screen, row, sizes)


def _knee(sizes: BatchSizes) -> str:
    if sizes.reason:
        return f"could not be measured: {neutral(sizes.reason, 240)}"
    if sizes.knee is None:
        return f"no best size: {neutral(sizes.why, 200)}"
    gain = sizes.gain
    more = (
        ""
        if gain is None or sizes.knee <= sizes.current or gain < 0.05
        else (f", {1 + gain:.2g}x the samples per second of {sizes.current}")
    )
    return f"the best size is {sizes.knee}{more}: {neutral(sizes.why, 200)}"


def _draw_row(screen: Screen, row: SizeRow, sizes: BatchSizes) -> None:
    marks = ["knee"] if row.size == sizes.knee else []
    marks += ["yours"] if row.size == sizes.current else []
    if not row.measured:
        screen.block(screen.text(neutral(row.reason, 240), "dim"), label=f"{row.size:>9,}", column=11)
        return
    cells = _cells(
        f"{row.size:,}",
        number(row.throughput),
        f"±{row.spread / row.throughput:.0%}",
        _seconds(row.seconds),
        size(row.peak) if row.peak else "",
        size(row.process) if row.process else "",
    )
    most = max(one.throughput for one in sizes.rows)
    bar = screen.glyphs.block * max(round(row.throughput / most * BAR), 1)
    style = "bold green" if row.size == sizes.knee else ""
    screen.row(
        screen.join(screen.text(cells, style), screen.text(f"  {bar.ljust(BAR)} {', '.join(marks)}", "dim"))
    )


def _cells(size: str, rate: str, spread: str, step: str, tensors: str, process: str) -> str:
    return f"{size:>9}{rate:>11} {spread:<5}{step:>9}{tensors:>10}{process:>9}"
