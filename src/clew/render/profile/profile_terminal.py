"""A profile in the terminal: step parts, modules, ops, lines, memory, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO

from clew.checks.perf.memory_growth import MemoryGrowth
from clew.records.finding import Finding, Severity
from clew.records.plural import counted
from clew.records.step_costs import Growth, ProcessMemory, Profile, StepMemory
from clew.records.verdict import Verdict
from clew.render.number_text import number, share, signed_size, size, span
from clew.render.profile.cost_tables import draw_lines, draw_modules, draw_ops, draw_syncs, place
from clew.render.profile.flame_graph import draw_flame
from clew.render.run_summary import RunSummary
from clew.render.safe_text import neutral, short_path
from clew.render.screen import Screen
from clew.render.sparkline import sparkline
from clew.render.text_table import Column, draw_table
from clew.render.verdict.finding_block import (
    COLUMN,
    FULL_ROOTS,
    draw_effects,
    draw_finding,
    effects_by_root,
    one_line,
)

OF_COSTS = "PERF"  # how the ids of the checks about speed and memory begin

BAR = 24  # columns of a whole step
SAYS = {"data": "data wait", "rest": "everything else", "clew": "Clew itself"}
FLAME_DEPTH = 4  # lines below the step; more is hard to read on a terminal


def render_profile(
    profile: Profile,
    verdict: Verdict | None,
    run: RunSummary,
    stream: IO[str] | None = None,
    *,
    width: int | None = None,
    full: bool = False,
) -> None:
    """Draw on a stream (stderr by default); `full` leaves nothing out."""
    screen = Screen(stream, width)
    screen.rule()
    _draw_title(screen, profile, run)
    if is_empty(profile):
        screen.block(
            "no step was profiled: the run ended before the first step, or it does not train with torch"
        )
    _draw_parts(screen, profile)
    draw_modules(screen, profile, full=full)
    draw_ops(screen, profile, full=full)
    draw_lines(screen, profile, full=full)
    if full:
        draw_syncs(screen, profile)
    found = verdict is not None and any(finding.check == MemoryGrowth.name for finding in verdict.findings)
    draw_memory(screen, profile.memory, full=full, growth=not found)
    _draw_flames(screen, profile, full)
    if verdict is not None and not (is_empty(profile) and not verdict.findings):
        draw_advice(screen, verdict, run, full=full)
    _draw_end(screen, profile, run, full)


def is_empty(profile: Profile) -> bool:
    return not (profile.parts or profile.modules or profile.ops or profile.lines or profile.step_median)


def _draw_title(screen: Screen, profile: Profile, run: RunSummary) -> None:
    dot = f" {screen.glyphs.dot} "
    steps = counted(run.steps, "step")
    threads = f"{profile.threads} of {profile.cores} threads" if profile.cores > 1 else "1 thread"
    place = f"{neutral(profile.device, 40)}, {threads}"
    about = screen.join(neutral(run.script, 60), steps, place, gap=dot)
    screen.block(screen.join(screen.text("clew profile  ", "bold"), about))
    if not profile.step_median:
        return
    speed = profile.samples_per_second
    facts = [
        screen.text(f"{span(profile.step_median)} per step", "bold"),
        screen.text(f"p95 {span(profile.step_p95)}" if profile.step_p95 else ""),
        screen.text(f"{number(speed)} samples/s" if speed else ""),
        screen.text(_profiled_steps(screen, profile), "dim"),
    ]
    screen.block(screen.join(*facts, gap=dot))


def _profiled_steps(screen: Screen, profile: Profile) -> str:
    first, last = profile.steps
    among = f" ({first}{screen.glyphs.dash}{last})" if last > first else ""
    return f"{counted(profile.detailed, 'step')}{among} in detail" if profile.detailed else ""


def _draw_parts(screen: Screen, profile: Profile) -> None:
    """Adds up to the whole; time that no part accounts for has its own line."""
    if not profile.parts:
        return
    screen.blank()
    block = screen.glyphs.block
    rows = [
        [
            SAYS.get(part.name, neutral(part.name, 40)),
            span(part.median),
            span(part.p95),
            share(part.share),
            block * round(BAR * min(max(part.share, 0.0), 1.0)),
        ]
        for part in profile.parts
        if part.share > 0 or part.median > 0
    ]
    if profile.unattributed > 0 and profile.step_median > 0:
        left = profile.unattributed / profile.step_median
        rows.append(
            ["left over", span(profile.unattributed), "", share(left), block * round(BAR * min(left, 1.0))]
        )
    columns = (
        Column("a step", left=True, flexible=True),
        Column("median"),
        Column("p95"),
        Column("share"),
        Column("", left=True, style="cyan", drop=1),
    )
    draw_table(screen, columns, rows)


def _draw_flames(screen: Screen, profile: Profile, full: bool) -> None:
    flames = [(profile.flame, "time", FLAME_DEPTH if not full else 12)]
    if full:
        flames += [(profile.python, "Python", 12), (profile.memory.root, "memory", 12)]
    for root, name, depth in flames:
        if root is None or root.value <= 0 or not root.children:
            continue
        screen.blank()
        screen.block(screen.text(f"flame: {name}", "dim"))
        draw_flame(screen, root, depth=depth, text=size if name == "memory" else span)


def _draw_end(screen: Screen, profile: Profile, run: RunSummary, full: bool) -> None:
    screen.blank()
    screen.rule()
    for note in profile.notes:
        screen.block(screen.text(neutral(note), "yellow"), label="note", column=COLUMN)
    if not run.path:  # a block of a program that is not recorded
        return
    path = screen.text(neutral(short_path(run.path), 200), "dim")
    screen.block(path, label="run", column=COLUMN)
    more = f"clew ui {screen.glyphs.dot} clew profile --export {neutral(run.id, 80)}"
    if not full:
        more = f"clew profile --all {neutral(run.id, 80)}"
    screen.block(screen.text(more, "dim"), label="more", column=COLUMN)


def draw_advice(screen: Screen, verdict: Verdict, run: RunSummary, *, full: bool) -> None:
    """Findings about costs in full; other findings one line each, never hidden."""
    groups = effects_by_root(verdict.findings)
    advice = [group for group in groups if is_about_costs(group[0])]
    drawn = advice if full else advice[:FULL_ROOTS]
    for root, effects in drawn:
        screen.blank()
        draw_finding(screen, root, run, full=full)
        draw_effects(screen, effects, run, full=full)
    rest = [finding for root, effects in advice[len(drawn) :] for finding in (root, *effects)]
    others = [f for root, effects in groups if not is_about_costs(root) for f in (root, *effects)]
    _draw_brief(screen, rest, "")
    _draw_brief(screen, [f for f in others if full or f.severity is not Severity.ADVICE], "also found")
    if not advice and not others:
        screen.blank()
        screen.block(
            screen.text(f"{screen.glyphs.good} found no change that would make a step 5% faster", "green")
        )


def _draw_brief(screen: Screen, findings: Sequence[Finding], heading: str) -> None:
    if not findings:
        return
    screen.blank()
    if heading:
        screen.block(screen.text(heading, "dim"))
    for finding in findings:
        screen.block(one_line(screen, finding))


def is_about_costs(finding: Finding) -> bool:
    return finding.id.startswith(OF_COSTS)


# ---- memory ----------------------------------------------------------------------------------

GROWTH = 1024  # bytes per step from which a slope is reported
PROCESSES = 4  # shown, unless all are requested
MEMORY_BAR = 16
SPARK = 16


def draw_memory(screen: Screen, memory: StepMemory, *, full: bool, growth: bool = True) -> None:
    """`growth` False: growth is reported elsewhere."""
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
    """In one line; as a table with the timeline if everything is requested."""
    whole = max(memory.peak, sum(kinds.values()), 1)
    ordered = sorted(kinds.items(), key=lambda kind: -kind[1])
    if not full:
        parts = ", ".join(f"{neutral(name, 40)} {size(n)} ({share(n / whole)})" for name, n in ordered)
        screen.block(
            screen.join(
                screen.text(f"{size(whole)} of tensors at the peak", "bold"), f": {parts}" if parts else ""
            )
        )
        return
    rows = [
        [neutral(name, 40), size(n), share(n / whole), screen.glyphs.block * round(MEMORY_BAR * n / whole)]
        for name, n in ordered
    ]
    columns = (Column("tensors at the peak", left=True, flexible=True), Column("size"), Column("share"))
    draw_table(
        screen, (*columns, Column("", left=True, style="cyan", drop=1)), [*rows, ["all", size(whole), "", ""]]
    )
    if len(memory.timeline) > 1:
        line = sparkline([float(amount) for _, amount in memory.timeline], 48, plain=screen.glyphs.plain)
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
        used = sum(process.pss or process.rss for process in rest)
        screen.block(screen.text(f"and {len(rest)} more, {size(used)}", "dim"))


def _process_row(screen: Screen, process: ProcessMemory) -> list[str]:
    readings = [float(amount) for _, amount in process.readings]
    return [
        neutral(process.role, 40),
        str(process.pid),
        size(process.rss),
        size(process.pss) if process.pss is not None else "",
        size(process.uss) if process.uss is not None else "",
        signed_size(process.slope) if abs(process.slope) >= GROWTH else "",
        sparkline(readings, SPARK, plain=screen.glyphs.plain) if len(readings) > 1 else "",
    ]


def _growing(process: ProcessMemory) -> str:
    return f", {signed_size(process.slope)} per step" if abs(process.slope) >= GROWTH else ""


def _draw_growth(screen: Screen, growth: Growth) -> None:
    where = place(growth.file, growth.line, 80)
    owner = neutral(growth.owner, 300) or "owner unknown"
    growing = f"{signed_size(growth.slope)} per step: {owner}"
    known = where and where not in growing
    text = screen.text(f"{growing} ({where})" if known else growing, "yellow")
    screen.block(screen.join(screen.text("grows ", "bold yellow"), text))
