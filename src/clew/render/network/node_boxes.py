"""The text in the box of a node, its width, and its colour."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from clew.records.network import Graph, Node
from clew.render.number_text import count, short, size
from clew.render.safe_text import cut, neutral

_SCALES = {"flops": "flops", "memory": "saved", "parameters": "parameters"}
PALETTE = ("#f4f6fa", "#e6eef9", "#d3e3f6", "#bfd7f2", "#a9caee", "#92bce9")  # dark text stays legible


class Colour:
    """A colour for each node by its share of a quantity."""

    def __init__(self, graph: Graph, by: str = "flops") -> None:
        self._field = _SCALES.get(by, "flops")
        roots = [n.id for n in graph.nodes if n.parent is None and n.kind == "module"]
        whole = roots[0] if len(roots) == 1 else None  # contains everything, which makes all others pale
        self._most = max((self._amount(n) for n in graph.nodes if n.id != whole), default=0.0)

    def of(self, node: Node) -> str:
        if node.kind in ("input", "output"):
            return "#e9f5ec"
        share = min(self._amount(node) / self._most, 1.0) if self._most else 0.0
        return PALETTE[min(int(share * len(PALETTE)), len(PALETTE) - 1)]

    def _amount(self, node: Node) -> float:
        return float(getattr(node, self._field)) * max(node.repeat, 1)


def lines_of(node: Node, *, reused: bool = False) -> tuple[str, str]:
    """The text in a node's box: its name, and shape, parameters and FLOPs of all it represents.

    `reused`: it represents calls of one module, whose parameters exist once.
    """
    repeat = f" ×{node.repeat}" if node.repeat > 1 else ""
    each = f"{node.repeat} × " if node.repeat > 1 else ""
    kind = f"  {cut(neutral(node.type, 40), 24)}" if node.kind == "module" and node.type != node.label else ""
    facts = [
        _outputs(node),
        f"{'' if reused else each}{count(node.parameters)} params" if node.parameters else "",
        f"{each}{short(node.flops, 'FLOPs')}" if node.flops else "",
    ]
    return cut(neutral(node.label, 40), 28) + repeat + kind, " · ".join(fact for fact in facts if fact)


LINE = 15.0  # of text
PAD, HEAD = 16.0, 34.0  # around the boxes inside an open one; for its title


@dataclass(frozen=True)
class Box:
    """How a node looks: its texts, its size when closed, and the width of its title when open."""

    lines: tuple[str, ...]
    width: float
    height: float
    title: float


def box_of(node: Node, *, reused: bool, opens: bool) -> Box:
    """`opens`: it contains boxes itself, so that a browser puts a sign before its name."""
    lines = tuple(line for line in lines_of(node, reused=reused) if line) or ("",)
    signed = [f"+ {lines[0]}", *lines[1:]] if opens else lines
    height = LINE * len(lines) + 10
    return Box(lines, round(box_width(signed), 1), height, round(text_width("   ".join(signed)) + 16, 1))


def _outputs(node: Node) -> str:
    if not node.outputs:
        return ""
    more = f" +{len(node.outputs) - 1}" if len(node.outputs) > 1 else ""
    return cut(neutral(node.outputs[0].text()), 40) + more


def tip_of(node: Node) -> str:
    """The tooltip of a node."""
    where = f"{node.file}:{node.line}" if node.file else ""
    kept = f"{size(node.saved)} kept for backward" if node.saved else ""
    idle = "" if node.feeds_result else "not used for the result"
    parts = (node.path or node.label, node.type, kept, where, idle)
    return "\n".join(neutral(part, 200) for part in parts if part)


POINTS = 11.0  # size of the font
NARROWEST = 60.0

# As a share of the font size, as wide as in the widest of the common fonts (DejaVu Sans,
# Verdana): it is not known which one a viewer has.
_NARROW, _NORMAL, _BROAD, _SIGN, _FULL = 0.42, 0.64, 0.78, 0.84, 1.0
_THIN = frozenset("iIjlft.,:;'|!()[] \u00b7-/r")
_WIDE = frozenset("mwMW@%")


def box_width(lines: Sequence[str]) -> float:
    """The width of a box with these lines."""
    return max(NARROWEST, *(text_width(line) + 16 for line in lines))


def text_width(text: str) -> float:
    """The largest possible width of a text."""
    return POINTS * sum(map(_letter_width, text))


def _letter_width(letter: str) -> float:
    if letter in _THIN:
        return _NARROW
    if letter in _WIDE or unicodedata.east_asian_width(letter) in "WF":
        return _FULL
    if letter in "\u00d7+=<>~&#_":
        return _SIGN
    return _BROAD if letter.isupper() else _NORMAL
