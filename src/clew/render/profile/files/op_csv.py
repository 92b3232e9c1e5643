"""The ops of a profile as a table for spreadsheets and scripts: a row for each op, shapes and module."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from clew.records.step_costs import Profile

HEADER = ("parameter scope", "function name", "input shapes", "arguments", "forward", "backward", "runs")
_OBEYED = ("=", "+", "@", "\t", "\r")  # a spreadsheet takes a cell that begins so for a formula


def write_csv(profile: Profile, path: Path) -> bool:
    """Times are mean seconds of one run; `runs` is how often it ran in the steps that were looked at."""
    rows = list(_ops(profile)) or list(_modules(profile))
    if not rows:
        return False
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(HEADER)
        writer.writerows(rows)
    return True


def _ops(profile: Profile) -> Iterator[list[str]]:
    for op in profile.ops:
        words = (op.module, op.op, op.shapes, op.arguments)
        yield _row(words, op.forward, op.backward, op.calls, profile.detailed)


def _modules(profile: Profile) -> Iterator[list[str]]:
    """Where no ops were told apart: the modules' own times."""
    for module in profile.modules:
        words = (module.module, module.type, "", "")
        yield _row(words, module.self_forward, module.self_backward, module.calls, profile.detailed)


def _row(words: tuple[str, ...], forward: float, backward: float, calls: float, steps: int) -> list[str]:
    each = calls if calls > 0 else 1.0
    times = [f"{seconds / each:.9g}" for seconds in (forward, backward)]
    return [*map(_inert, words), *times, str(round(calls * max(steps, 1)))]


def _inert(text: str) -> str:
    """Text that no spreadsheet runs."""
    formula = text.startswith(_OBEYED) or (text.startswith("-") and not _is_number(text))
    return f"'{text}" if formula else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
