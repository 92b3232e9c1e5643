"""The graph as a picture: boxes within boxes, laid out level by level from the inside out.

A level is a module's own children: few, whatever the size of the whole. Laying out one level at a
time keeps thousands of ops drawable in a moment.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape

from clew.show.model_layers import Colour, Levels, lines_of
from clew.show.safe_text import neutral
from clew.structure import Graph, Node

LETTER, LINE = 6.6, 15.0  # of an 11-point sans-serif font
PAD, HEAD, GAP_X, GAP_Y = 14.0, 26.0, 18.0, 30.0
NARROWEST = 74.0
LANE, ROUND = 12.0, 6.0  # ways beside the boxes: their distance, and how they turn
INK = ("#1c2635", "#56637a")


Drawn = tuple[int, int, str, int | None]  # from, to, what flows, and the way beside the boxes if it takes one


@dataclass
class Box:
    """A node's place, relative to what holds it."""

    node: Node
    width: float
    height: float
    lines: list[str]
    inside: list[Box] = field(default_factory=list)
    edges: list[Drawn] = field(default_factory=list)
    inner: float = 0.0  # width of what is inside, without the ways beside it
    x: float = 0.0
    y: float = 0.0


def svg(graph: Graph, colour: Colour, *, expand: bool = False) -> str:
    """Collapsed to the modules of the outermost one; `expand` opens everything."""
    levels = Levels(graph, fold=not expand)
    opened = levels.with_children() if expand else levels.open_at_first()
    boxes, edges, inner, width, height = _laid_out(levels, None, opened)
    body = _level(boxes, edges, inner, colour)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="Helvetica, Arial, sans-serif" font-size="11">'
        f"<title>{escape(neutral(graph.name, 80))}</title>"
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0 0L8 4L0 8z" fill="#7a8699"/></marker></defs>'
        f'<rect width="100%" height="100%" fill="white"/>{body}</svg>\n'
    )


def _laid_out(
    levels: Levels, holder: int | None, opened: set[int]
) -> tuple[list[Box], list[Drawn], float, float, float]:
    level = levels.level(holder)
    boxes = [_box(levels, node, opened) for node in level.nodes]
    rows: dict[int, list[Box]] = {}
    for box in boxes:
        rows.setdefault(level.ranks[box.node.id], []).append(box)
    widths = {rank: sum(b.width for b in row) + GAP_X * (len(row) - 1) for rank, row in rows.items()}
    widest = max(widths.values(), default=0.0)
    y = PAD if holder is None else HEAD
    for rank in sorted(rows):
        x = PAD + (widest - widths[rank]) / 2
        for box in rows[rank]:
            box.x, box.y = x, y
            x += box.width + GAP_X
        y += max(b.height for b in rows[rank]) + GAP_Y
    lanes = level.lanes()
    edges = [(a, b, t.text() if t is not None else "", lanes.get((a, b))) for a, b, t in level.edges]
    beside = LANE * (max(lanes.values()) + 1) if lanes else 0.0
    return boxes, edges, widest, widest + 2 * PAD + beside, y - GAP_Y + PAD


def _box(levels: Levels, node: Node, opened: set[int]) -> Box:
    lines = [line for line in lines_of(node) if line]
    width = max(NARROWEST, LETTER * max(map(len, lines)) + 16)
    if node.id not in opened or not levels.children.get(node.id):
        return Box(node, width, LINE * len(lines) + 10, lines)
    inside, edges, inner, inner_width, inner_height = _laid_out(levels, node.id, opened)
    return Box(node, max(width, inner_width), inner_height, lines, inside, edges, inner)


def _level(boxes: list[Box], edges: list[Drawn], inner: float, colour: Colour) -> str:
    places = {box.node.id: box for box in boxes}
    drawn = [
        _edge(
            _curve(places[a], places[b])
            if lane is None
            else _detour(places[a], places[b], PAD + inner + LANE * (lane + 1)),
            text,
        )
        for a, b, text, lane in edges
    ]
    return "".join([*(_drawn(box, colour) for box in boxes), *drawn])


def _drawn(box: Box, colour: Colour) -> str:
    dashed = "" if box.node.feeds_result else ' stroke-dasharray="4 3"'
    fill = "#fbfcfe" if box.inside else colour.of(box.node)
    rect = (
        f'<rect width="{box.width:.1f}" height="{box.height:.1f}" rx="5" fill="{fill}" '
        f'stroke="#9aa7bb"{dashed}/>'
    )
    texts = "".join(
        f'<text x="8" y="{LINE * (n + 1):.0f}" fill="{INK[min(n, 1)]}">{escape(line)}</text>'
        for n, line in enumerate(box.lines[:1] if box.inside else box.lines)
    )
    inner = _level(box.inside, box.edges, box.inner, colour) if box.inside else ""
    title = f"<title>{escape(_tip(box.node))}</title>"
    return f'<g transform="translate({box.x:.1f} {box.y:.1f})">{title}{rect}{texts}{inner}</g>'


def _tip(node: Node) -> str:
    where = f"{node.file}:{node.line}" if node.file else ""
    idle = "" if node.feeds_result else "does not feed the result"
    return "\n".join(neutral(part, 200) for part in (node.path or node.label, node.type, where, idle) if part)


def _curve(source: Box, target: Box) -> str:
    x1, y1 = source.x + source.width / 2, source.y + source.height
    x2, y2 = target.x + target.width / 2, target.y
    bend = max((y2 - y1) / 2, 12.0)
    return f"M{x1:.1f} {y1:.1f}C{x1:.1f} {y1 + bend:.1f} {x2:.1f} {y2 - bend:.1f} {x2:.1f} {y2:.1f}"


def _detour(source: Box, target: Box, x: float) -> str:
    """Out at the side, along a way of its own, and in at the side of another, above where it goes out."""
    x1, y1 = source.x + source.width, source.y + source.height * 0.7
    x2, y2 = target.x + target.width, target.y + target.height * 0.3
    turn = ROUND if y2 > y1 else -ROUND
    return (
        f"M{x1:.1f} {y1:.1f}H{x - ROUND:.1f}Q{x:.1f} {y1:.1f} {x:.1f} {y1 + turn:.1f}"
        f"V{y2 - turn:.1f}Q{x:.1f} {y2:.1f} {x - ROUND:.1f} {y2:.1f}H{x2:.1f}"
    )


def _edge(path: str, text: str) -> str:
    title = f"<title>{escape(text)}</title>"
    return f'<path d="{path}" fill="none" stroke="#7a8699" marker-end="url(#tip)">{title}</path>'
