"""Flame graphs: as text, every frame as wide as its share, and as one HTML file with nothing else in it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.records.step_costs import DEEPEST, FlameFrame, Profile
from clew.render.html_bundle import PageInfo, bundled_page
from clew.render.number_text import share, size, span
from clew.render.safe_text import neutral
from clew.render.screen import Screen
from clew.render.text_table import fitted
from clew.render.verdict_json import dumps

if TYPE_CHECKING:
    from rich.text import Text

ALIKE = 3  # neighbours from which they are merged
NUMBER = re.compile(r"\d+")
NAMED = 5  # columns from which a frame shows its name
SHADES = ("black on cyan", "black on green", "black on yellow", "black on blue", "black on magenta")


@dataclass(frozen=True)
class FlamePiece:
    """Columns of one line; without a frame it is a gap."""

    left: int
    width: int
    frame: FlameFrame | None = None


def draw_flame(
    screen: Screen, root: FlameFrame, *, depth: int = 5, text: Callable[[float], str] = span
) -> None:
    """At most `depth` lines below the root; frames narrower than a column are left out."""
    if root.value <= 0:
        return
    title = f"{neutral(root.name, 120)} {text(root.value)}"
    folded = merged(root, depth)
    for n, pieces in enumerate(layers(folded, screen.width, depth)):
        screen.row(_line(screen, pieces, folded, n, title))


def merged(frame: FlameFrame, depth: int) -> FlameFrame:
    """Neighbours whose names differ only in a number become one: `layers.0…11`. No deeper than is drawn."""
    if depth == 0:
        return replace(frame, children=())
    groups: list[list[FlameFrame]] = []
    for child in frame.children:
        if groups and _pattern(groups[-1][0].name) == _pattern(child.name) != child.name:
            groups[-1].append(child)
        else:
            groups.append([child])
    shown = [one for group in groups for one in ([_as_one(group, depth)] if len(group) >= ALIKE else group)]
    return replace(frame, children=tuple(merged(child, depth - 1) for child in shown))


def _as_one(group: list[FlameFrame], depth: int) -> FlameFrame:
    """Their children of the same name are merged."""
    inside: dict[str, list[FlameFrame]] = {}
    for frame in group:
        for child in frame.children if depth else ():
            inside.setdefault(_pattern(child.name), []).append(child)
    children = tuple(_as_one(same, depth - 1) if len(same) > 1 else same[0] for same in inside.values())
    last = NUMBER.search(group[-1].name)
    same_name = all(frame.name == group[0].name for frame in group)
    named = group[0].name
    if last is not None and not same_name:
        named = NUMBER.sub(lambda first: f"{first[0]}…{last[0]}", named, count=1)
    return FlameFrame(named, sum(frame.value for frame in group), children=children)


def _pattern(name: str) -> str:
    return NUMBER.sub("*", name, count=1)


def layers(root: FlameFrame, width: int, depth: int) -> list[list[FlamePiece]]:
    """The pieces of each line, from the outermost frame down."""
    lines = [[FlamePiece(0, width, root)]]
    while len(lines) <= depth:
        pieces = [piece for above in lines[-1] for piece in _inside(above)]
        if not pieces:
            break
        lines.append(pieces)
    return lines


def _inside(above: FlamePiece) -> list[FlamePiece]:
    """Edges are rounded, not widths, so that a frame's children never reach beyond it."""
    assert above.frame is not None
    whole = max(above.frame.value, sum(max(child.value, 0) for child in above.frame.children))
    found, passed = [], 0.0
    for child in above.frame.children:
        start = round(above.width * passed / whole) if whole > 0 else 0
        passed += max(child.value, 0)
        end = round(above.width * passed / whole) if whole > 0 else 0
        if end > start:
            found.append(FlamePiece(above.left + start, end - start, child))
    return found


def _line(screen: Screen, pieces: list[FlamePiece], root: FlameFrame, depth: int, title: str) -> Text:
    parts: list[str | Text] = []
    at = 0
    for number, piece in enumerate(pieces):
        parts.append(" " * (piece.left - at))
        style = SHADES[(depth + number) % len(SHADES)] if screen.coloured else ""
        parts.append(screen.text(_label(screen, piece, root, title), style))
        at = piece.left + piece.width
    return screen.join(*parts)


def _label(screen: Screen, piece: FlamePiece, root: FlameFrame, title: str) -> str:
    """`│forward 41%`, cut to its width; the bar separates frames where there is no colour."""
    stroke, filler = ("|", "=") if screen.glyphs.plain else ("▏", " ")
    frame = piece.frame
    if piece.width < NAMED or frame is None:
        return stroke + filler * (piece.width - 1)
    if frame is root:
        return stroke + fitted(screen, title, piece.width - 1)
    return stroke + fitted(screen, _words(frame, root, piece.width - 1), piece.width - 1)


def _words(frame: FlameFrame, root: FlameFrame, room: int) -> str:
    """As much as fits: the name with its share, without its type, at last only the end of its path."""
    name = neutral(frame.name, 120)
    bare = name.partition(" (")[0] or name
    short = bare.rpartition(".")[2] or bare
    part = share(frame.value / root.value)
    wordings = (f"{name} {part}", f"{bare} {part}", bare, f"{short} {part}", short)
    return next((words for words in wordings if len(words) <= room), short)


# ---- as one HTML file ------------------------------------------------------------------------

SMALLEST = 2e-4  # share of the whole below which a frame is folded into its caller
LONGEST_NAME = 300  # characters of a name


def write_html(profile: Profile, path: Path, title: str = "") -> bool:
    """Returns whether there was a flame graph to write. Raises `BundleNotBuilt`."""
    page = html_page(profile, title)
    if page is None:
        return False
    path.write_text(page, encoding="utf-8")
    return True


def html_page(profile: Profile, title: str = "") -> str | None:
    """One file that needs no network; None if there is no flame graph. Raises `BundleNotBuilt`."""
    flames = {"flame": profile.flame, "python": profile.python, "memory": profile.memory.root}
    if not any(flames.values()):
        return None
    trees = {name: compact(root) if root is not None else None for name, root in flames.items()}
    heading = neutral(title or "profile", 120)
    page: PageInfo = {"shows": "flames", "title": heading, "about": _page_about(profile)}
    shown = {
        "steps": profile.steps,
        "detailed": profile.detailed,
        **trees,
        "memory": {"root": trees["memory"]},
    }
    return bundled_page(dumps({"page": page, "profile": shown}, dense=True), heading)


def _page_about(profile: Profile) -> str:
    parts = [f"a step takes {span(profile.step_median)}"] if profile.step_median else []
    if profile.detailed:
        first, last = profile.steps
        parts.append(f"{profile.detailed} of steps {first} to {last} profiled in detail")
    if profile.memory.peak:
        parts.append(f"tensors at the peak {size(profile.memory.peak)}")
    return ", ".join(parts)


def compact(root: FlameFrame) -> dict[str, Any]:
    """Nested rows without frames too small to see; iterative, as stacks may be deep."""
    least = SMALLEST * root.value
    top = _flame_row(root)
    waiting = [(root, top, 1)]
    while waiting:
        frame, row, depth = waiting.pop()
        for child in frame.children if depth < DEEPEST else ():
            if child.value > 0 and child.value >= least:
                row["children"].append(_flame_row(child))
                waiting.append((child, row["children"][-1], depth + 1))
    return top


def own(frame: FlameFrame) -> float:
    """A frame's value without its children's; ignores its `self`."""
    return max(frame.value - sum(child.value for child in frame.children), 0.0)


def _flame_row(frame: FlameFrame) -> dict[str, Any]:
    return {
        "name": neutral(frame.name, LONGEST_NAME),
        "value": frame.value,
        "own": own(frame),
        "file": neutral(frame.file, LONGEST_NAME) if frame.file else None,
        "line": frame.line,
        "children": [],
    }
