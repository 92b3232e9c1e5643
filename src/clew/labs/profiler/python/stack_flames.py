"""Turns stack samples into a flame graph, the cost of source lines, and the kinds of work.

All times are seconds per step. Clew's own frames are taken out, and what Clew did is left out.
"""

from __future__ import annotations

import linecache
import os
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import CodeType

from clew.hooks.entry.user_line import HIDDEN, USER, kind_of
from clew.labs.profiler.python.stack_kinds import CLEW, REST, kind_of_stack, landmark, own_calls
from clew.labs.profiler.python.stack_sampler import Call, Samples, Stack
from clew.records.step_costs import PARTS, FlameFrame, LineCost

SMALLEST = 0.001  # of the step: calls below this share are drawn as one
MOST_LINES = 200
CLEARLY = 0.8  # of a line's time, to say of which kind it is
_PLUMBING = {"_wrapped_call_impl", "_call_impl", "decorate_context", "profile_hook_step", "_use_grad"}


def python_flame(samples: Samples) -> FlameFrame | None:
    """The calls of a step as a tree, functions as nodes."""
    root = _Node()
    for stack, seconds, _ in samples.records:
        calls = own_calls(stack)
        if calls is not None:
            root.add([key for key in (_key(call) for call in calls) if key is not None], seconds)
    if not root.seconds or not samples.steps:
        return None
    return root.frame(("step", None, None), 1.0 / len(samples.steps), SMALLEST * root.seconds)


_Key = tuple[str, str | None, int | None]


def _key(call: Call) -> _Key | None:
    """Name, file and line of a function; None for what only passes a call on."""
    function, _ = call
    if isinstance(function, str):
        return function, None, None
    file = function.co_filename
    if kind_of(file) == HIDDEN and function.co_name in _PLUMBING:
        return None
    name = os.path.basename(file) if function.co_name == "<module>" else name_of(function)
    return name, file, function.co_firstlineno


def name_of(code: CodeType) -> str:
    """`Net.forward` where the interpreter knows it (from 3.11 on)."""
    name: str = getattr(code, "co_qualname", code.co_name)
    return name.rpartition("<locals>.")[2]


@dataclass
class _Node:
    seconds: float = 0.0
    own: float = 0.0
    children: dict[_Key, _Node] = field(default_factory=dict)

    def add(self, keys: list[_Key], seconds: float) -> None:
        node = self
        node.seconds += seconds
        for key in keys:
            node = node.children.setdefault(key, _Node())
            node.seconds += seconds
        node.own += seconds

    def frame(self, key: _Key, scale: float, least: float) -> FlameFrame:
        """As plain data, children with the most time first."""
        shown = {k: n for k, n in self.children.items() if n.seconds >= least}
        ordered = sorted(shown.items(), key=lambda pair: -pair[1].seconds)
        children = [node.frame(k, scale, least) for k, node in ordered]
        small = sum(n.seconds for k, n in self.children.items() if k not in shown)
        if small:
            children.append(FlameFrame("…", small * scale, small * scale))
        name, file, line = key
        return FlameFrame(name, self.seconds * scale, self.own * scale, file, line, None, tuple(children))


# -- lines --


def source_lines(samples: Samples, accelerator: bool = False, most: int = MOST_LINES) -> tuple[LineCost, ...]:
    """What lines cost, the user's own files first, each by its total.

    What a line runs itself, and the functions in C that it calls, are its own; `total` has the rest.
    """
    lines: dict[tuple[str, int], _Line] = defaultdict(_Line)
    for stack, seconds, _ in samples.records:
        calls = own_calls(stack)
        for line, depth in _lines_of(calls or ()).items():
            assert calls is not None
            lines[line].add(calls, depth, seconds, accelerator)
    steps = max(len(samples.steps), 1)
    costs = [entry.cost(file, line, steps) for (file, line), entry in lines.items()]
    costs.sort(key=lambda cost: (kind_of(cost.file) != USER, -cost.total, cost.file, cost.line))
    return tuple(costs[:most])


def _lines_of(calls: Stack) -> dict[tuple[str, int], int]:
    """The lines of a stack that are neither torch's nor the interpreter's; the innermost place of each."""
    return {
        (code.co_filename, line): depth
        for depth, (code, line) in enumerate(calls)
        if not isinstance(code, str) and kind_of(code.co_filename) != HIDDEN
    }


@dataclass
class _Line:
    own: float = 0.0
    total: float = 0.0
    function: str = ""
    kinds: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    def add(self, calls: Stack, depth: int, seconds: float, accelerator: bool) -> None:
        code = calls[depth][0]
        assert not isinstance(code, str)
        self.function = name_of(code)
        self.total += seconds
        below = calls[depth + 1 :]
        if not below or (len(below) == 1 and isinstance(below[0][0], str)):
            self.own += seconds
        kind = kind_of_stack(below, accelerator)
        inside = landmark(calls[depth], accelerator)
        self.kinds[inside if kind == REST and inside else kind] += seconds

    def cost(self, file: str, line: int, steps: int) -> LineCost:
        kind, most = max(self.kinds.items(), key=lambda pair: pair[1])
        clear = kind != REST and most >= CLEARLY * self.total
        code = linecache.getline(file, line).strip()[:200]
        own, total = self.own / steps, self.total / steps
        return LineCost(file, line, self.function, code, own, total, kind if clear else "")


# -- kinds --


def seconds_by_kind(samples: Samples, accelerator: bool = False) -> dict[str, tuple[float, ...]]:
    """For each of `costs.PARTS` that was seen, its seconds in each of the steps, in their order."""
    place = {step: n for n, step in enumerate(samples.steps)}
    found: dict[str, list[float]] = {}
    for stack, seconds, step in samples.records:
        calls = own_calls(stack)
        kind = CLEW if calls is None else kind_of_stack(calls, accelerator)
        found.setdefault(kind, [0.0] * len(place))[place[step]] += seconds
    return {kind: tuple(found[kind]) for kind in PARTS if kind in found}


def share_by_kind(by_step: Mapping[str, tuple[float, ...]]) -> dict[str, float]:
    """Of the program's own time (Clew's is left out)."""
    sums = {kind: sum(seconds) for kind, seconds in by_step.items() if kind != CLEW}
    whole = sum(sums.values())
    return {kind: seconds / whole for kind, seconds in sums.items()} if whole else {}
