"""The flame graphs of a profile as one HTML file that needs nothing else."""

from __future__ import annotations

import json
import re
from html import escape
from pathlib import Path
from typing import Any

from clew.records.step_costs import Frame, Profile
from clew.render.cost_text import own, span
from clew.render.safe_text import neutral
from clew.render.size_text import size

SMALLEST = 2e-4  # share of the whole below which a frame is folded into its caller
LONGEST = 300  # characters of a name
DEEPEST = 200  # levels; JSON is not made for more, nor is a screen


def write_html(profile: Profile, path: Path, title: str = "") -> bool:
    page = html_page(profile, title)
    if page is None:
        return False
    path.write_text(page, encoding="utf-8")
    return True


def html_page(profile: Profile, title: str = "") -> str | None:
    """Everything inlined; no network, no library. None if there is no flame."""
    flames = [flame for flame in _flames(profile) if flame["root"] is not None]
    if not flames:
        return None
    # Within a script element only tags are dangerous.
    data = json.dumps(flames, separators=(",", ":")).replace("<", "\\u003c")
    page = Path(__file__).with_name("profile_page.html").read_text(encoding="utf-8")
    title = escape(neutral(title or "profile", 120))
    filled = {"@TITLE@": title, "@ABOUT@": escape(_about(profile)), "@DATA@": data}
    return re.sub("@(TITLE|ABOUT|DATA)@", lambda found: filled[found[0]], page)


def _about(profile: Profile) -> str:
    parts = [f"a step takes {span(profile.step_median)}"] if profile.step_median else []
    if profile.detailed:
        first, last = profile.steps
        parts.append(f"{profile.detailed} of steps {first} to {last} profiled in detail")
    if profile.memory.peak:
        parts.append(f"tensors at the peak {size(profile.memory.peak)}")
    return ", ".join(parts)


def _flames(profile: Profile) -> list[dict[str, Any]]:
    kinds = (
        ("time", "Time", "s", profile.flame),
        ("python", "Python", "s", profile.python),
        ("memory", "Memory", "B", profile.memory.root),
    )
    return [
        {"id": id_, "title": title, "unit": unit, "root": compact(root) if root else None}
        for id_, title, unit, root in kinds
    ]


def compact(root: Frame) -> list[Any]:
    """Nested rows of name, value, own, place, children; made without recursion, as stacks may be deep."""
    least = SMALLEST * root.value
    top: list[Any] = _row(root)
    waiting = [(root, top, 1)]
    while waiting:
        frame, row, depth = waiting.pop()
        for child in frame.children if depth < DEEPEST else ():
            if child.value > 0 and child.value >= least:
                row[4].append(_row(child))
                waiting.append((child, row[4][-1], depth + 1))
    return top


def _row(frame: Frame) -> list[Any]:
    line = f":{frame.line}" if frame.line is not None else ""
    place = neutral(f"{frame.file}{line}", LONGEST) if frame.file else ""
    return [neutral(frame.name, LONGEST), frame.value, own(frame), place, []]
