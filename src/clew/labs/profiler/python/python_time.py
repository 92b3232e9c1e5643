"""The share of a step spent in Python itself, and on which of the user's lines: `profile.python`.

The sampler sees who runs, but not whether `a * b` multiplies tensors or numbers: a slot of a type is no
call. Torch's own trace knows how long operations took. Only what both leave over is Python.
"""

from __future__ import annotations

import builtins
import linecache
import os
from collections import defaultdict
from typing import Any

from clew.hooks.entry.user_line import HIDDEN, USER, kind_of
from clew.labs.profiler.cost_tally import OPTIMIZER
from clew.labs.profiler.python.stack_flames import name_of
from clew.labs.profiler.python.stack_kinds import FORWARD, REST, kind_of_stack, own_calls
from clew.labs.profiler.python.stack_sampler import Samples, Stack
from clew.records.step_costs import Profile

MOST_LINES = 5
_TORCH = f"{os.sep}torch{os.sep}"
_BUILTINS = frozenset(dir(builtins)) - {"print", "input", "open"}


def python_time(profile: Profile, samples: Samples) -> dict[str, Any] | None:
    """Shares of a step outside torch's operations; the profile must have all of its ops.

    Shares, because steps that are looked at may be slower than others.
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
    ordered = sorted(lines.items(), key=lambda item: -item[1])[:MOST_LINES]
    return {
        "sampled": sum(lines.values()) / whole,
        "left": outside_operations(profile),
        "lines": [
            {
                "file": file,
                "line": line,
                "function": functions[file, line],
                "code": linecache.getline(file, line).strip()[:120],
                "share": seconds / whole,
            }
            for (file, line), seconds in ordered
        ],
    }


def _innermost(calls: Stack) -> tuple[tuple[str, int], str]:
    """The last of the user's own lines, and its function."""
    for code, number in reversed(calls):
        if not isinstance(code, str) and _is_users(code):
            return (code.co_filename, number), name_of(code)
    return ("", 0), ""


def is_python(calls: Stack) -> bool:
    """Whether the time was spent in the interpreter: in no code of torch's, and in no function in C but
    Python's own."""
    if not any(_is_users(function) for function, _ in calls):
        return False
    last, _ = calls[-1]
    if isinstance(last, str):
        before = calls[-2][0] if len(calls) > 1 else last
        return last.partition(".")[0] in _BUILTINS and _is_outside_torch(before)
    return _is_outside_torch(last)


def _is_users(function: Any) -> bool:
    return not isinstance(function, str) and kind_of(function.co_filename) == USER


def _is_outside_torch(function: Any) -> bool:
    if isinstance(function, str):
        return False
    return kind_of(function.co_filename) != HIDDEN or _TORCH not in function.co_filename


def outside_operations(profile: Profile) -> float:
    """Share of a step in forward and rest in which no operation ran."""
    inside = sum(m.self_forward for m in profile.modules)
    operations = sum(op.forward for op in profile.ops if op.module != OPTIMIZER)
    between = profile.unattributed / profile.step_median if profile.step_median > 0 else 0.0
    within = (inside - operations) / profile.detailed_step if profile.detailed_step > 0 else 0.0
    return between + max(within, 0.0)
