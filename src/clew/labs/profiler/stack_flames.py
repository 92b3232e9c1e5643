"""Turns stack samples into a flame graph, the cost of source lines, and the time spent in Python itself.

All times are seconds per step. Clew's own frames are removed, and its time is left out.
"""

from __future__ import annotations

import builtins
import linecache
import os
from collections import defaultdict
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

from clew.hooks.entry.user_line import HIDDEN, USER, kind_of
from clew.labs.profiler.cost_tally import OPTIMIZER
from clew.labs.profiler.stack_kinds import FORWARD, REST, is_users, kind_of_stack, landmark, own_calls
from clew.labs.profiler.stack_sampler import Call, Samples, Stack
from clew.records.facts.profile_facts import PythonLine, PythonTimeFact
from clew.records.step_costs import FlameFrame, LineCost, Profile

SMALLEST = 0.001  # of the step: calls below this share are drawn as one
MOST_LINES = 200
CLEARLY = 0.8  # of a line's time, to assign it a kind
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
    """Name, file and line of a function; None for one that only passes a call on."""
    function, _ = call
    if isinstance(function, str):
        return function, None, None
    file = function.co_filename
    if kind_of(file) == HIDDEN and function.co_name in _PLUMBING:
        return None
    name = os.path.basename(file) if function.co_name == "<module>" else name_of(function)
    return name, file, function.co_firstlineno


def name_of(code: CodeType) -> str:
    """`Net.forward` where the interpreter knows it (since 3.11)."""
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


def source_lines(samples: Samples, accelerator: bool = False) -> tuple[LineCost, ...]:
    """The cost of lines, the user's own files first, each sorted by total.

    What a line runs itself, and the C functions it calls, are its own time; `total` includes the rest.
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
    return tuple(costs[:MOST_LINES])


def _lines_of(calls: Stack) -> dict[tuple[str, int], int]:
    """The lines of a stack that are not torch's or the interpreter's; each at its innermost position."""
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


def seconds_by_kind(samples: Samples, accelerator: bool = False) -> dict[str, float]:
    """The seconds of each of `step_costs.PARTS` that was seen; Clew's own time is left out."""
    found: dict[str, float] = defaultdict(float)
    for stack, seconds, _ in samples.records:
        calls = own_calls(stack)
        if calls is not None:
            found[kind_of_stack(calls, accelerator)] += seconds
    return dict(found)


def share_of_kind(kind: str, samples: Samples, accelerator: bool = False) -> float:
    """The share of a part in the program's own time."""
    found = seconds_by_kind(samples, accelerator)
    whole = sum(found.values())
    return found.get(kind, 0.0) / whole if whole else 0.0


# -- the time spent in Python itself --

# The sampler sees which code runs, but not whether `a * b` multiplies tensors or numbers: a type slot is no
# call. Torch's own trace knows how long operations took. Only what neither accounts for is Python.

MOST_NAMED = 5  # lines
_TORCH = f"{os.sep}torch{os.sep}"
_BUILTINS = frozenset(dir(builtins)) - {"print", "input", "open"}


def python_time(profile: Profile, samples: Samples) -> PythonTimeFact | None:
    """The fact `profile.python`: shares of a step outside torch's operations.

    The profile must include all of its ops. Shares, because sampled steps may be slower than others.
    """
    if not samples.steps or not profile.detailed:
        return None
    lines: dict[tuple[str, int], float] = defaultdict(float)
    functions: dict[tuple[str, int], str] = {}
    for stack, seconds, _ in samples.records:
        calls = own_calls(stack)
        if calls and is_python(calls) and kind_of_stack(calls) in (REST, FORWARD):
            key, function = _innermost(calls)
            lines[key] += seconds
            functions[key] = function
    whole = max(samples.seconds, 1e-9)
    ordered = sorted(lines.items(), key=lambda item: -item[1])[:MOST_NAMED]
    return PythonTimeFact(
        sampled=sum(lines.values()) / whole,
        left=outside_operations(profile),
        lines=tuple(
            PythonLine(
                file=file,
                line=line,
                function=functions[file, line],
                code=linecache.getline(file, line).strip()[:120],
                share=seconds / whole,
            )
            for (file, line), seconds in ordered
        ),
    )


def _innermost(calls: Stack) -> tuple[tuple[str, int], str]:
    """The user's innermost line, and its function."""
    for code, number in reversed(calls):
        if not isinstance(code, str) and kind_of(code.co_filename) == USER:
            return (code.co_filename, number), name_of(code)
    return ("", 0), ""


def is_python(calls: Stack) -> bool:
    """Whether the time was spent in the interpreter, not in torch or a C function of another package."""
    if not any(is_users(call) for call in calls):
        return False
    last, _ = calls[-1]
    if isinstance(last, str):
        before = calls[-2][0] if len(calls) > 1 else last
        return last.partition(".")[0] in _BUILTINS and _is_outside_torch(before)
    return _is_outside_torch(last)


def _is_outside_torch(function: Any) -> bool:
    if isinstance(function, str):
        return False
    return kind_of(function.co_filename) != HIDDEN or _TORCH not in function.co_filename


def outside_operations(profile: Profile) -> float:
    """Share of a step in forward and rest during which no operation ran."""
    inside = sum(m.self_forward for m in profile.modules)
    operations = sum(op.forward for op in profile.ops if op.module != OPTIMIZER)
    between = profile.unattributed / profile.step_median if profile.step_median > 0 else 0.0
    within = (inside - operations) / profile.detailed_step if profile.detailed_step > 0 else 0.0
    return between + max(within, 0.0)
