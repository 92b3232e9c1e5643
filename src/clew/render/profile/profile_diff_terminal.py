"""The diff of two profiles in the terminal: settings first, then what became slower or faster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import IO

from clew.records.plural import counted
from clew.render.number_text import share, size, span
from clew.render.profile.profile_diff import FASTER, NOISE, SLOWER, CostChange, ProfileDiff, ordered
from clew.render.safe_text import neutral
from clew.render.screen import Screen
from clew.render.text_table import Column, draw_table
from clew.render.verdict.finding_block import COLUMN

FEW = 3  # modules named where none is beyond the noise
MOST = 8  # lines of each table, unless all are requested
STYLES = {SLOWER: "bold red", FASTER: "bold green", NOISE: "bold"}


def render_comparison(
    comparison: ProfileDiff, stream: IO[str] | None = None, *, width: int | None = None, full: bool = False
) -> None:
    """Draw on a stream (stderr by default); `full` also lists what is within the noise."""
    screen = Screen(stream, width)
    screen.rule()
    names = screen.join(*(neutral(name, 80) for name in comparison.names), gap=f" {screen.glyphs.arrow} ")
    screen.block(screen.join(screen.text("clew profile  ", "bold"), names))
    for difference in comparison.differences:
        setting = screen.text(neutral(difference, 300), "yellow")
        screen.block(setting, label="differs", column=COLUMN)
    _draw_step(screen, comparison.step)
    _draw_changes(screen, comparison.parts, "part", full)
    if comparison.step.significant and not ordered(comparison.modules):
        _draw_largest(screen, comparison.modules, full)
    _draw_changes(screen, comparison.modules, "module", full)
    _draw_changes(screen, comparison.ops, "op", full)
    _draw_changes(screen, comparison.memory, "memory", full, size)
    _draw_noise(screen, comparison, full)


def _draw_step(screen: Screen, step: CostChange) -> None:
    if not step.before and not step.after:
        screen.block("neither run has a timed step")
        return
    word = {SLOWER: "slower", FASTER: "faster"}.get(step.verdict, "the same within the noise")
    by = f"{share(abs(step.difference) / (step.before or step.after or 1.0))} " if step.significant else ""
    times = f": {span(step.before or 0.0)} {screen.glyphs.arrow} {span(step.after or 0.0)}"
    margin = f" (±{span(2 * step.error)})" if step.error > 0 else ""
    screen.block(
        screen.join(
            screen.text(f"a step is {by}{word}", STYLES[step.verdict]), times, screen.text(margin, "dim")
        )
    )


def _draw_largest(screen: Screen, modules: Sequence[CostChange], full: bool) -> None:
    """If none stands out by itself, those that may explain it together."""
    leaves = [m for m in modules if not any(_is_inside(other.name, m.name) for other in modules)]
    largest = sorted(leaves, key=lambda change: -abs(change.difference))[:FEW]
    if largest and not full:
        _draw_table(screen, largest, "module", span)


def _is_inside(path: str, around: str) -> bool:
    return path != around and (not around or path.startswith(f"{around}."))


def _draw_changes(
    screen: Screen,
    changes: Sequence[CostChange],
    what: str,
    full: bool,
    text: Callable[[float], str] = span,
) -> None:
    found = ordered(changes)
    shown = list(changes) if full else found[:MOST]
    if not shown:
        return
    _draw_table(screen, shown, what, text)
    if len(shown) < len(found):
        screen.block(screen.text(f"and {len(found) - len(shown)} more", "dim"))


def _draw_table(screen: Screen, shown: Sequence[CostChange], what: str, text: Callable[[float], str]) -> None:
    columns = (
        Column(what, left=True, flexible=True, least=24),
        Column("before"),
        Column("after"),
        Column("change"),
        Column("±", drop=2),
        Column("", drop=1),
        Column("", left=True),
    )
    screen.blank()
    draw_table(screen, columns, [_row(change, text) for change in shown])


def _row(change: CostChange, text: Callable[[float], str]) -> list[str]:
    name = neutral(change.name, 160) or "(model)"
    relative = abs(change.difference) / change.before if change.before else 0.0
    sign = "+" if change.difference > 0 else "-" if change.difference < 0 else ""
    there = change.before is not None and change.after is not None
    return [
        f"{name} {neutral(change.type, 40)}".rstrip(),
        text(change.before) if change.before is not None else "",
        text(change.after) if change.after is not None else "",
        f"{sign}{text(abs(change.difference))}" if there else "",
        text(2 * change.error) if change.error > 0 else "",
        f"{sign}{share(relative)}" if relative and there else "",
        change.verdict,
    ]


def _draw_noise(screen: Screen, comparison: ProfileDiff, full: bool) -> None:
    """How much was left out as noise: silence must not look like equality."""
    counts = [
        (name, sum(not change.significant for change in changes))
        for name, changes in (
            ("part", comparison.parts),
            ("module", comparison.modules),
            ("op", comparison.ops),
        )
    ]
    within = ", ".join(counted(n, name) for name, n in counts if n)
    screen.blank()
    screen.rule()
    if within and not full:
        screen.block(screen.text(f"{within} within the noise, or below 1% of a step", "dim"))
