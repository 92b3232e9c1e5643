"""Where the time of a program goes: the tree of modules, ops, source lines, and host syncs."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field, replace

from clew.records.step_costs import LineCost, ModuleCost, OpCost, Profile, Sync
from clew.render.number_text import rate, share, size, span
from clew.render.safe_text import neutral, short_path
from clew.render.screen import Screen
from clew.render.text_table import Column, draw_table

NUMBER = re.compile(r"(?<=\.)\d+(?=\.|$)")  # of a module in a list
MODULES = 10  # lines of each table, unless all are requested
OPS = 4
LINES = 5
WIDE = 100  # columns from which every module shows its type
SLOWED = 1.1  # times the median step from which the profiler's overhead is reported
CALLS_ALL = 0.95  # share of a step from which a line is only the caller of what runs
RELEVANT = 0.01  # share of a step below which an op or a line is left out, unless all are requested


def draw_modules(screen: Screen, profile: Profile, *, full: bool) -> None:
    """The tree of those that matter; the others in one line, so that nothing is missing silently."""
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
    """Profiling costs time: reported where the numbers would not match those above."""
    if profile.detailed_step > SLOWED * profile.step_median > 0:
        note = f"in the steps profiled in detail, which take {span(profile.detailed_step)} each"
        screen.block(screen.text(note, "dim"))


def _module_row(depth: int, branch: Branch, profile: Profile, wide: bool) -> list[str]:
    """A number as a name says nothing: it always shows its type, however little room there is."""
    cost = branch.cost
    own = cost.self_forward + cost.self_backward
    times = f" ×{branch.members}" if branch.members > 1 else ""
    memory = sum(b.cost.parameters + b.cost.activations for _, b in branch.walk())
    name = neutral(branch.name, 120) or "(model)"
    type_name = f" {neutral(cost.type, 40)}" if wide or not name[0].isalpha() else ""
    return [
        "  " * min(depth, 8) + name + times + type_name,
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
    """The share of a step; empty if no step was timed."""
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
    return [group[0] if len(group) == 1 else _summed_ops(group) for group in groups.values()]


def _summed_ops(ops: Sequence[OpCost]) -> OpCost:
    """One for all of them; the share of the roof is weighted by time."""
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
    """The lines that were running; where the source is known, it says more than a number."""
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
    """A line that calls everything says as little as one that hardly ever runs."""
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
    """`train.py:31`; for a long path the end, which says more."""
    if not file:
        return ""
    name = neutral(file if file.startswith("<") else short_path(file), 400)
    where = name if line is None else f"{name}:{line}"
    return where if len(where) <= longest else "…" + where[1 - longest :]


def draw_syncs(screen: Screen, profile: Profile) -> None:
    """Where the host waits for tensor values."""
    if not profile.syncs:
        return
    columns = (
        Column("host synchronisations", left=True),
        Column("line", left=True, style="cyan"),
        Column("code", left=True, flexible=True),
        Column("calls"),
        Column("time"),
    )
    costliest = sorted(profile.syncs, key=lambda sync: -sync.seconds)
    screen.blank()
    draw_table(screen, columns, [_sync_row(sync) for sync in costliest])


def _sync_row(sync: Sync) -> list[str]:
    code = neutral(sync.code.strip(), 160)
    return [neutral(sync.op, 28), place(sync.file, sync.line), code, f"{sync.calls:.3g}", span(sync.seconds)]


def _least(profile: Profile) -> float:
    return RELEVANT * profile.step_median


def _draw_rest(screen: Screen, number: int, what: str) -> None:
    if number > 0:
        screen.block(screen.text(f"and {number:,} more {what}", "dim"))


# ---- the tree of modules ---------------------------------------------------------------------

EQUAL_BLOCKS = 3  # equal neighbours from which they become one line
RELEVANT_MODULE = 0.03  # share of the outermost modules' time below which one is not shown
TOLERANCE = 1.6  # times the first one's time: a slower block among equal ones is a line of its own
NUMBERED_NAME = re.compile(r"(.*?)(\d+)")


@dataclass
class Branch:
    """A module, or several identical ones, with their contents."""

    name: str  # relative to the enclosing module
    cost: ModuleCost
    members: int = 1
    inside: list[Branch] = field(default_factory=list)

    def walk(self, depth: int = 0) -> Iterator[tuple[int, Branch]]:
        waiting = [(depth, self)]
        while waiting:
            level, branch = waiting.pop()
            yield level, branch
            waiting += [(level + 1, child) for child in reversed(branch.inside)]


def grown(modules: Sequence[ModuleCost]) -> list[Branch]:
    """The outermost modules, each with its submodules, in forward order."""
    branches = {module.module: Branch(module.module, module) for module in modules}
    outermost = []
    for path, branch in branches.items():
        around = enclosing_module(path, branches)
        if around is None:
            outermost.append(branch)
        else:
            branch.name = path[len(around) + 1 :] if around else path
            branches[around].inside.append(branch)
    return outermost


def enclosing_module(path: str, known: Container[str]) -> str | None:
    """The nearest enclosing module; lists and the like are not called and may be missing."""
    if path.startswith("("):  # "(outside modules)", "(optimizer)"
        return None
    while "." in path:
        path = path.rpartition(".")[0]
        if path in known:
            return path
    return "" if path and "" in known else None


def folded(branches: Sequence[Branch]) -> list[Branch]:
    """Neighbours of the same type and about the same time as one; their contents are folded likewise."""
    runs: list[list[Branch]] = []
    for branch in branches:
        if runs and _continues(runs[-1], branch):
            runs[-1].append(branch)
        else:
            runs.append([branch])
    found = []
    for run in runs:
        merged = [_merged_blocks(run)] if len(run) >= EQUAL_BLOCKS else run
        found += [replace(one, inside=folded(one.inside)) for one in merged]
    return found


def _continues(run: Sequence[Branch], branch: Branch) -> bool:
    first, here = NUMBERED_NAME.fullmatch(run[0].name), NUMBERED_NAME.fullmatch(branch.name)
    if first is None or here is None or first[1] != here[1] or run[0].cost.type != branch.cost.type:
        return False
    low, high = sorted((run[0].cost.total, branch.cost.total))
    return high <= TOLERANCE * low and len(run[0].inside) == len(branch.inside)


def _merged_blocks(run: Sequence[Branch]) -> Branch:
    """One for all; merges the members' submodules of the same name."""
    parts: dict[str, list[Branch]] = {}
    for branch in run:
        for child in branch.inside:
            parts.setdefault(child.name, []).append(child)
    last = NUMBERED_NAME.fullmatch(run[-1].name)
    name = f"{run[0].name}…{last[2]}" if last else run[0].name
    inside = [
        replace(_merged_blocks(same), name=key) if len(same) > 1 else same[0] for key, same in parts.items()
    ]
    return Branch(name, summed_modules([branch.cost for branch in run]), sum(b.members for b in run), inside)


def summed_modules(costs: Sequence[ModuleCost]) -> ModuleCost:
    """All of them together; the share of the roof is weighted by time."""
    time = sum(cost.total for cost in costs if cost.roof is not None)
    roof = sum((cost.roof or 0.0) * cost.total for cost in costs) / time if time > 0 else None
    return replace(
        costs[0],
        calls=sum(c.calls for c in costs),
        forward=sum(c.forward for c in costs),
        backward=sum(c.backward for c in costs),
        self_forward=sum(c.self_forward for c in costs),
        self_backward=sum(c.self_backward for c in costs),
        spread=sum(c.spread**2 for c in costs) ** 0.5,
        flops=sum(c.flops for c in costs),
        moved=sum(c.moved for c in costs),
        roof=roof,
        parameters=sum(c.parameters for c in costs),
        activations=sum(c.activations for c in costs),
        peak=max(c.peak for c in costs),
    )


def rows_shown(modules: Sequence[ModuleCost], most: int) -> tuple[list[tuple[int, Branch]], list[Branch]]:
    """The most expensive with their depth, in forward order, and those left out."""
    rows = [row for branch in folded(grown(modules)) for row in branch.walk()]
    order = sorted(range(len(rows)), key=lambda n: (-rows[n][1].cost.total, rows[n][0], n))
    whole = sum(branch.cost.total for depth, branch in rows if depth == 0)
    chosen = {n for n in order[:most] if rows[n][1].cost.total >= RELEVANT_MODULE * whole}
    kept = [row for n, row in enumerate(rows) if n in chosen]
    return kept, [row[1] for n, row in enumerate(rows) if n not in chosen]
