"""The flame graphs of a profile as one HTML file: the browser page with nothing else in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from clew.records.step_costs import DEEPEST, FlameFrame, Profile
from clew.render.bundle import bundled_page
from clew.render.number_text import own, span
from clew.render.safe_text import neutral
from clew.render.size_text import size
from clew.render.verdict_json import dumps

SMALLEST = 2e-4  # share of the whole below which a frame is folded into its caller
LONGEST = 300  # characters of a name


def write_html(profile: Profile, path: Path, title: str = "") -> bool:
    """Whether there was a flame to write. Raises `BundleNotBuilt`."""
    page = html_page(profile, title)
    if page is None:
        return False
    path.write_text(page, encoding="utf-8")
    return True


def html_page(profile: Profile, title: str = "") -> str | None:
    """One file that needs no network; None if there is no flame. Raises `BundleNotBuilt`."""
    flames = {"flame": profile.flame, "python": profile.python, "memory": profile.memory.root}
    if not any(flames.values()):
        return None
    trees = {name: compact(root) if root is not None else None for name, root in flames.items()}
    heading = neutral(title or "profile", 120)
    page = {"shows": "flames", "title": heading, "about": _about(profile)}
    shown = {
        "steps": profile.steps,
        "detailed": profile.detailed,
        **trees,
        "memory": {"root": trees["memory"]},
    }
    return bundled_page(dumps({"page": page, "profile": shown}, dense=True), heading)


def _about(profile: Profile) -> str:
    parts = [f"a step takes {span(profile.step_median)}"] if profile.step_median else []
    if profile.detailed:
        first, last = profile.steps
        parts.append(f"{profile.detailed} of steps {first} to {last} profiled in detail")
    if profile.memory.peak:
        parts.append(f"tensors at the peak {size(profile.memory.peak)}")
    return ", ".join(parts)


def compact(root: FlameFrame) -> dict[str, Any]:
    """Nested rows without what is too small to see; made without recursion, as stacks may be deep."""
    least = SMALLEST * root.value
    top = _row(root)
    waiting = [(root, top, 1)]
    while waiting:
        frame, row, depth = waiting.pop()
        for child in frame.children if depth < DEEPEST else ():
            if child.value > 0 and child.value >= least:
                row["children"].append(_row(child))
                waiting.append((child, row["children"][-1], depth + 1))
    return top


def _row(frame: FlameFrame) -> dict[str, Any]:
    return {
        "name": neutral(frame.name, LONGEST),
        "value": frame.value,
        "own": own(frame),
        "file": neutral(frame.file, LONGEST) if frame.file else None,
        "line": frame.line,
        "children": [],
    }
