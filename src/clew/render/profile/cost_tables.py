"""Where the time of a program goes: modules, ops, source lines, and host syncs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from clew.records.step_costs import LineCost, OpCost, Profile, Sync
from clew.render.columns import Column, draw_table
from clew.render.number_text import rate, share, span
from clew.render.profile.module_tree import Branch, grown, rows_shown
from clew.render.safe_text import neutral, short_path
from clew.render.screen import Screen
from clew.render.size_text import size

NUMBER = re.compile(r"(?<=\.)\d+(?=\.|$)")  # of a module in a list
MODULES = 10  # lines of each table, unless all are asked for
OPS = 4
LINES = 5
WIDE = 100  # columns from which every module has its type beside it
SLOWED = 1.1  # times the usual step from which it is said that looking takes time
CALLS_ALL = 0.95  # share of a step from which a line is only the way to what runs
RELEVANT = 0.01  # share of a step below which an op or a line tells nothing, unless all are asked for


def draw_modules(screen: Screen, profile: Profile, *, full: bool) -> None:
    """The tree of those that matter; the others in one line, so that nothing is missing unsaid."""
    if not profile.modules:
        return
    if full:
        shown = [row for branch in grown(profile.modules) for row in branch.walk()]
        left: list[Branch] = []
    else:
        shown, left = rows_shown(profile.modules, MODULES)
    rows = [_module_row(depth, branch, profile, screen.width >= WIDE) for depth, branch in shown]
    if left:
        own = sum(b.cost.self_forward + b.cost.self_backward for b in left)
        count = sum(branch.members for branch in left)
        rows.append([f"and {count} more inside", "", "", "", "", span(own), "", "", "", ""])
    columns = (
        Column("module", left=True, flexible=True, least=20),
        Column("calls", drop=6),
        Column("total"),
        Column("forward", drop=2),
        Column("backward", drop=2),
        Column("self"),
        Column("share"),
        Column("FLOP/s", drop=4),
        Column("roof", drop=1),
        Column("memory", drop=3),
    )
    screen.blank()
    _draw_slowed(screen, profile)
    draw_table(screen, columns, rows)


def _draw_slowed(screen: Screen, profile: Profile) -> None:
    """Being looked at costs time: said where the numbers would not go with those above."""
    if profile.detailed_step > SLOWED * profile.step_median > 0:
        told = f"in the steps profiled in detail, which take {span(profile.detailed_step)} each"
        screen.block(screen.text(told, "dim"))


def _module_row(depth: int, branch: Branch, profile: Profile, wide: bool) -> list[str]:
    """A number as name says nothing: it has its type beside it, however little room there is."""
    cost = branch.cost
    own = cost.self_forward + cost.self_backward
    times = f" ×{branch.members}" if branch.members > 1 else ""
    memory = sum(b.cost.parameters + b.cost.activations for _, b in branch.walk())
    name = neutral(branch.name, 120) or "(model)"
    told = f" {neutral(cost.type, 40)}" if wide or not name[0].isalpha() else ""
    return [
        "  " * min(depth, 8) + name + times + told,
        f"{cost.calls:.3g}",
        span(cost.total),
        span(cost.forward),
        span(cost.backward),
        span(own),
        of_step(cost.total, profile),
        rate(cost.flops, cost.total).replace("FLOP/s", "").strip(),
        share(cost.roof) if cost.roof is not None else "",
        size(memory) if memory else "",
    ]


def of_step(seconds: float, profile: Profile) -> str:
    """The share of a step; nothing where no step was timed."""
    return share(profile.of_step(seconds)) if profile.step_median > 0 else ""


def draw_ops(screen: Screen, profile: Profile, *, full: bool) -> None:
    ops = sorted(profile.ops if full else alike(profile.ops), key=lambda op: -(op.forward + op.backward))
    shown = ops if full else [op for op in ops[:OPS] if op.forward + op.backward >= _least(profile)]
    if not shown:
        return
    columns = (
        Column("op", left=True),
        Column("module", left=True, drop=1),
        Column("input shapes", left=True, flexible=True, style="dim"),
        Column("calls", drop=3),
        Column("total"),
        Column("share"),
        Column("roof", drop=2),
    )
    screen.blank()
    draw_table(screen, columns, [_op_row(op, profile) for op in shown])
    _draw_rest(screen, len(ops) - len(shown), "ops")


def alike(ops: Sequence[OpCost]) -> list[OpCost]:
    """The same op with the same shapes in the blocks of a list as one: `layers.*.mlp`."""
    groups: dict[tuple[str, str, str], list[OpCost]] = {}
    for op in ops:
        groups.setdefault((NUMBER.sub("*", op.module), op.op, op.shapes), []).append(op)
    return [group[0] if len(group) == 1 else _summed(group) for group in groups.values()]


def _summed(ops: Sequence[OpCost]) -> OpCost:
    """One for all of them; the share of the roof by the time that each took."""
    names = zip(*(op.module.split(".") for op in ops), strict=True)
    module = ".".join(name[0] if len(set(name)) == 1 else "*" for name in names)
    times = [(op.roof, op.forward + op.backward) for op in ops if op.roof is not None]
    whole = sum(time for _, time in times)
    return replace(
        ops[0],
        module=module,
        calls=sum(op.calls for op in ops),
        forward=sum(op.forward for op in ops),
        backward=sum(op.backward for op in ops),
        roof=sum(roof * time for roof, time in times if roof is not None) / whole if whole > 0 else None,
    )


def _op_row(op: OpCost, profile: Profile) -> list[str]:
    total = op.forward + op.backward
    return [
        neutral(op.op.removeprefix("aten::"), 28),
        neutral(op.module, 28),
        neutral(op.shapes, 80),
        f"{op.calls:.3g}",
        span(total),
        of_step(total, profile),
        share(op.roof) if op.roof is not None else "",
    ]


def draw_lines(screen: Screen, profile: Profile, *, full: bool) -> None:
    """The lines that were running; where code is known, it says more than a number."""
    lines = sorted(profile.lines, key=lambda line: (-line.total, -line.self))
    whole = profile.python.value if profile.python else profile.step_median
    telling = [line for line in lines if _tells(line, whole)]
    shown = lines if full else telling[:LINES]
    if not shown:
        return
    columns = (
        Column("line", left=True, style="cyan"),
        Column("code", left=True, flexible=True),
        Column("kind", left=True, drop=1, style="dim"),
        Column("self", drop=2),
        Column("total"),
        Column("share"),
    )
    screen.blank()
    draw_table(screen, columns, [_line_row(line, whole) for line in shown])
    _draw_rest(screen, len(lines) - len(shown), "lines")


def _tells(line: LineCost, whole: float) -> bool:
    """A line that calls everything says as little as one that is hardly ever running."""
    return RELEVANT * whole <= line.total < CALLS_ALL * whole or line.self >= RELEVANT * whole


def _line_row(line: LineCost, whole: float) -> list[str]:
    return [
        place(line.file, line.line),
        neutral(line.code.strip() or line.function, 160),
        neutral(line.kind, 16),
        span(line.self),
        span(line.total),
        share(line.total / whole) if whole > 0 else "",
    ]


def place(file: str | None, line: int | None, longest: int = 28) -> str:
    """`train.py:31`; of a long path the end, which tells more."""
    if not file:
        return ""
    name = neutral(file if file.startswith("<") else short_path(file), 400)
    where = name if line is None else f"{name}:{line}"
    return where if len(where) <= longest else "…" + where[1 - longest :]


def draw_syncs(screen: Screen, profile: Profile) -> None:
    """Where the host waits for numbers."""
    if not profile.syncs:
        return
    columns = (
        Column("host synchronisations", left=True),
        Column("line", left=True, style="cyan"),
        Column("code", left=True, flexible=True),
        Column("calls"),
        Column("time"),
    )
    screen.blank()
    draw_table(screen, columns, [_sync_row(sync) for sync in _costliest(profile.syncs)])


def _costliest(syncs: Sequence[Sync]) -> list[Sync]:
    return sorted(syncs, key=lambda sync: -sync.seconds)


def _sync_row(sync: Sync) -> list[str]:
    code = neutral(sync.code.strip(), 160)
    return [neutral(sync.op, 28), place(sync.file, sync.line), code, f"{sync.calls:.3g}", span(sync.seconds)]


def _least(profile: Profile) -> float:
    return RELEVANT * profile.step_median


def _draw_rest(screen: Screen, number: int, what: str) -> None:
    if number > 0:
        screen.block(screen.text(f"and {number:,} more {what}", "dim"))
