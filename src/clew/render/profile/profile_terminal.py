"""A profile in the terminal: step parts, modules, ops, lines, memory, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO

from clew.records.finding import Finding, Severity
from clew.records.step_costs import Profile
from clew.records.verdict import Verdict
from clew.render.columns import Column, draw_table
from clew.render.number_text import number, share, span
from clew.render.profile.cost_tables import draw_lines, draw_modules, draw_ops, draw_syncs
from clew.render.profile.flame_text import draw_flame
from clew.render.profile.memory_text import draw_memory
from clew.render.run_summary import RunSummary
from clew.render.safe_text import neutral, short_path
from clew.render.screen import Screen
from clew.render.size_text import size
from clew.render.verdict.finding_block import COLUMN, draw_effects, draw_finding, one_line
from clew.render.verdict.root_causes import effects_by_root

WHOLE = 3  # drawn with evidence and fix; more would not fit the screen
OF_COSTS = "PERF"  # how the ids of the checks about speed and memory begin

BAR = 24  # columns of a whole step
SAYS = {"data": "data wait", "rest": "everything else", "clew": "Clew itself"}
FLAME_DEPTH = 4  # lines below the step; more says less on a terminal


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
    found = verdict is not None and any(finding.check == "memory-growth" for finding in verdict.findings)
    draw_memory(screen, profile.memory, full=full, growth=not found)
    _draw_flames(screen, profile, full)
    if verdict is not None and not (is_empty(profile) and not verdict.findings):
        draw_advice(screen, verdict, run, full=full)
    _draw_end(screen, profile, run, full)


def is_empty(profile: Profile) -> bool:
    return not (profile.parts or profile.modules or profile.ops or profile.lines or profile.step_median)


def _draw_title(screen: Screen, profile: Profile, run: RunSummary) -> None:
    dot = f" {screen.glyphs.dot} "
    steps = f"{run.steps:,} step{'' if run.steps == 1 else 's'}"
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
        screen.text(_looked_at(screen, profile), "dim"),
    ]
    screen.block(screen.join(*facts, gap=dot))


def _looked_at(screen: Screen, profile: Profile) -> str:
    first, last = profile.steps
    among = f" ({first}{screen.glyphs.dash}{last})" if last > first else ""
    steps = f"{profile.detailed} step{'' if profile.detailed == 1 else 's'}"
    return f"{steps}{among} in detail" if profile.detailed else ""


def _draw_parts(screen: Screen, profile: Profile) -> None:
    """Adds up to the whole; what no part accounts for is a line of its own."""
    if not profile.parts:
        return
    screen.blank()
    block = "#" if screen.glyphs.plain else "█"
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
        draw_flame(screen, root, depth=depth, told=size if name == "memory" else span)


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
    """Those about costs whole; what else is wrong with the run in a line each, never hidden."""
    groups = effects_by_root(verdict.findings)
    advice = [group for group in groups if is_about_costs(group[0])]
    drawn = advice if full else advice[:WHOLE]
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
            screen.text(f"{screen.glyphs.good} found nothing that would make a step 5 % faster", "green")
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
