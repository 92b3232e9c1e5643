"""The memory section of a profile: tensors by kind, processes, and what grows."""

from __future__ import annotations

from clew.records.step_costs import Growth, ProcessMemory, StepMemory
from clew.render.columns import Column, draw_table
from clew.render.number_text import share, signed_size
from clew.render.profile.cost_tables import place
from clew.render.safe_text import neutral
from clew.render.screen import Screen
from clew.render.size_text import size
from clew.render.sparkline import sparkline

GROWS = 1024  # bytes per step from which a slope is worth a word
PROCESSES = 4  # shown, unless all are asked for
BAR = 16
SPARK = 16


def draw_memory(screen: Screen, memory: StepMemory, *, full: bool, growth: bool = True) -> None:
    """`growth` False: what grows is told elsewhere."""
    kinds = {name: amount for name, amount in memory.kinds.items() if amount > 0}
    if memory.peak or kinds:
        screen.blank()
        _draw_tensors(screen, memory, kinds, full)
    if memory.processes:
        if full or len(memory.processes) > 1:
            screen.blank()
        _draw_processes(screen, memory.processes, full)
    if growth and memory.growth is not None and memory.growth.slope > 0:
        _draw_growth(screen, memory.growth)


def _draw_tensors(screen: Screen, memory: StepMemory, kinds: dict[str, int], full: bool) -> None:
    """In a line; as a table with the timeline where all is asked for."""
    whole = max(memory.peak, sum(kinds.values()), 1)
    ordered = sorted(kinds.items(), key=lambda kind: -kind[1])
    if not full:
        parts = ", ".join(
            f"{neutral(name, 40)} {size(n)} ({share(n / whole).replace(' ', '')})" for name, n in ordered
        )
        screen.block(
            screen.join(
                screen.text(f"{size(whole)} of tensors at the peak", "bold"), f": {parts}" if parts else ""
            )
        )
        return
    block = "#" if screen.glyphs.plain else "█"
    rows = [
        [neutral(name, 40), size(n), share(n / whole), block * round(BAR * n / whole)] for name, n in ordered
    ]
    columns = (Column("tensors at the peak", left=True, flexible=True), Column("size"), Column("share"))
    draw_table(
        screen, (*columns, Column("", left=True, style="cyan", drop=1)), [*rows, ["all", size(whole), "", ""]]
    )
    if len(memory.timeline) > 1:
        line = sparkline([float(held) for _, held in memory.timeline], 48, plain=screen.glyphs.plain)
        screen.row(screen.join(screen.text(line, "cyan"), screen.text("  over a step", "dim")))


def _draw_processes(screen: Screen, processes: tuple[ProcessMemory, ...], full: bool) -> None:
    ordered = sorted(processes, key=lambda process: (process.role != "main", -process.rss))
    shown = ordered if full else ordered[:PROCESSES]
    if not full and len(processes) == 1:
        screen.block(f"the process uses {size(ordered[0].rss)}{_growing(ordered[0])}")
        return
    columns = (
        Column("process", left=True, flexible=True),
        Column("pid", drop=3),
        Column("RSS"),
        Column("PSS", drop=2),
        Column("USS", drop=1),
        Column("a step"),
        Column("", left=True, drop=4, style="cyan"),
    )
    draw_table(screen, columns, [_process_row(screen, process) for process in shown])
    if len(shown) < len(ordered):
        rest = ordered[len(shown) :]
        held = sum(process.pss or process.rss for process in rest)
        screen.block(screen.text(f"and {len(rest)} more, {size(held)}", "dim"))


def _process_row(screen: Screen, process: ProcessMemory) -> list[str]:
    readings = [float(held) for _, held in process.readings]
    return [
        neutral(process.role, 40),
        str(process.pid),
        size(process.rss),
        size(process.pss) if process.pss is not None else "",
        size(process.uss) if process.uss is not None else "",
        signed_size(process.slope) if abs(process.slope) >= GROWS else "",
        sparkline(readings, SPARK, plain=screen.glyphs.plain) if len(readings) > 1 else "",
    ]


def _growing(process: ProcessMemory) -> str:
    return f", {signed_size(process.slope)} per step" if abs(process.slope) >= GROWS else ""


def _draw_growth(screen: Screen, growth: Growth) -> None:
    where = place(growth.file, growth.line, 80)
    owner = neutral(growth.owner, 300) or "owner unknown"
    told = f"{signed_size(growth.slope)} per step: {owner}"
    known = where and where not in told
    text = screen.text(f"{told} ({where})" if known else told, "yellow")
    screen.block(screen.join(screen.text("grows ", "bold yellow"), text))
