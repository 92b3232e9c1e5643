"""The modules of a profile as a tree, with consecutive identical blocks folded into one line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from clew.records.step_costs import ModuleCost

ALIKE = 3  # equal neighbours from which they are one line
RELEVANT = 0.03  # share of the outermost modules' time below which one is not shown
TOLERANCE = 1.6  # times the first one's time: a slower block among equal ones is a line of its own
NUMBERED = re.compile(r"(.*?)(\d+)")


@dataclass
class Branch:
    """A module, or several alike, with what is inside."""

    name: str  # as seen from the module around it
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
    """The outermost modules, each with those inside it, in forward order."""
    branches = {module.module: Branch(module.module, module) for module in modules}
    outermost = []
    for path, branch in branches.items():
        around = _around(path, branches)
        if around is None:
            outermost.append(branch)
        else:
            branch.name = path[len(around) + 1 :] if around else path
            branches[around].inside.append(branch)
    return outermost


def _around(path: str, known: dict[str, Branch]) -> str | None:
    """The nearest module that holds it; lists and the like are not called and may be missing."""
    if path.startswith("("):  # "(outside modules)", "(optimizer)"
        return None
    while "." in path:
        path = path.rpartition(".")[0]
        if path in known:
            return path
    return "" if path and "" in known else None


def folded(branches: Sequence[Branch]) -> list[Branch]:
    """Neighbours of the same type and about the same time as one; their insides are folded likewise."""
    runs: list[list[Branch]] = []
    for branch in branches:
        if runs and _continues(runs[-1], branch):
            runs[-1].append(branch)
        else:
            runs.append([branch])
    found = []
    for run in runs:
        merged = [_merged(run)] if len(run) >= ALIKE else run
        found += [replace(one, inside=folded(one.inside)) for one in merged]
    return found


def _continues(run: Sequence[Branch], branch: Branch) -> bool:
    first, here = NUMBERED.fullmatch(run[0].name), NUMBERED.fullmatch(branch.name)
    if first is None or here is None or first[1] != here[1] or run[0].cost.type != branch.cost.type:
        return False
    low, high = sorted((run[0].cost.total, branch.cost.total))
    return high <= TOLERANCE * low and len(run[0].inside) == len(branch.inside)


def _merged(run: Sequence[Branch]) -> Branch:
    """One for all; its inside puts the members' parts of the same name together."""
    parts: dict[str, list[Branch]] = {}
    for branch in run:
        for child in branch.inside:
            parts.setdefault(child.name, []).append(child)
    last = NUMBERED.fullmatch(run[-1].name)
    name = f"{run[0].name}…{last[2]}" if last else run[0].name
    inside = [replace(_merged(same), name=key) if len(same) > 1 else same[0] for key, same in parts.items()]
    return Branch(name, summed([branch.cost for branch in run]), sum(b.members for b in run), inside)


def summed(costs: Sequence[ModuleCost]) -> ModuleCost:
    """All of them together; the share of the roof by the time that each took."""
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
    """The costliest with their depth, in forward order, and those left out."""
    rows = [row for branch in folded(grown(modules)) for row in branch.walk()]
    order = sorted(range(len(rows)), key=lambda n: (-rows[n][1].cost.total, rows[n][0], n))
    whole = sum(branch.cost.total for depth, branch in rows if depth == 0)
    chosen = {n for n in order[:most] if rows[n][1].cost.total >= RELEVANT * whole}
    kept = [row for n, row in enumerate(rows) if n in chosen]
    return kept, [row[1] for n, row in enumerate(rows) if n not in chosen]
