"""The graph as a picture: boxes within boxes, laid out level by level from the inside out.

A level is a module's own children: few, whatever the size of the whole. Laying out one level at a
time keeps thousands of ops drawable in a moment.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from clew.records.network import Graph, Node
from clew.render.network.box_places import Places, placed
from clew.render.network.graph_levels import Level, Levels
from clew.render.network.node_boxes import POINTS, Colour, box_width, lines_of, text_width, tip_of
from clew.render.safe_text import neutral

LINE = 15.0
PAD, HEAD = 16.0, 34.0
INK = ("#1c2635", "#56637a")
FONTS = "Helvetica, Arial, sans-serif"


@dataclass
class Box:
    """A node with what is drawn of it."""

    node: Node
    width: float
    height: float
    lines: list[str]
    inside: Laid | None = None


@dataclass
class Laid:
    """A level whose boxes have their places; (x, y) is where the places begin."""

    level: Level
    boxes: list[Box]
    places: Places
    x: float
    y: float

    @property
    def width(self) -> float:
        return self.places.width + 2 * PAD

    @property
    def height(self) -> float:
        return self.y + self.places.height + PAD


def svg(graph: Graph, colour: Colour, *, expand: bool = False) -> str:
    """Collapsed to the modules of the outermost one; `expand` opens everything."""
    levels = Levels(graph, fold=not expand)
    opened = levels.with_children() if expand else levels.open_at_first()
    laid = _laid_out(levels, None, opened)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{laid.width:.0f}" height="{laid.height:.0f}" '
        f'viewBox="0 0 {laid.width:.0f} {laid.height:.0f}" font-family="{FONTS}" font-size="{POINTS:g}">'
        f"<title>{escape(neutral(graph.name, 80))}</title>"
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0 0L8 4L0 8z" fill="#7a8699"/></marker></defs>'
        f'<rect width="100%" height="100%" fill="white"/>{_drawn_level(laid, colour)}</svg>\n'
    )


def _laid_out(levels: Levels, holder: int | None, opened: set[int], least: float = 0.0) -> Laid:
    level = levels.level(holder)
    boxes = [_box(levels, node, opened) for node in level.nodes]
    places = placed(level.rows, [b.width for b in boxes], [b.height for b in boxes])
    spare = max(least - 2 * PAD - places.width, 0.0)
    places.width += spare
    return Laid(level, boxes, places, PAD + spare / 2, PAD if holder is None else HEAD)


def _box(levels: Levels, node: Node, opened: set[int]) -> Box:
    lines = [line for line in lines_of(node, reused=node.id in levels.reused) if line]
    if node.id not in opened or not levels.children.get(node.id):
        return Box(node, box_width(lines), LINE * len(lines) + 10, lines)
    head = "   ".join(lines)
    inside = _laid_out(levels, node.id, opened, text_width(head) + 16)
    return Box(node, inside.width, inside.height, lines, inside)


def _drawn_level(laid: Laid, colour: Colour) -> str:
    """Lines first: whatever happens, no line strikes out a label."""
    lines = [
        _line(_way(laid, a, b), laid.level.edges[edge], b < len(laid.boxes))
        for a, b, edge in laid.level.rows.lines
    ]
    boxes = [
        _drawn(box, laid.x + laid.places.x[n] - box.width / 2, laid.y + _top(laid, n), colour)
        for n, box in enumerate(laid.boxes)
    ]
    return "".join([*lines, *boxes])


def _top(laid: Laid, place: int) -> float:
    return laid.places.tops[laid.places.row[place]]


def _way(laid: Laid, a: int, b: int) -> str:
    """From the bottom of its row over to its place in the next, and on through that if it is a passage."""
    places, boxes = laid.places, laid.boxes
    if places.row[a] > places.row[b]:  # back up, which only a graph with a cycle has
        begin, end = _top(laid, a), places.bottoms[places.row[b]]
        return _curve(laid, places.x[a], begin, begin, places.x[b], end)
    bottom = places.bottoms[places.row[a]]
    begin = _top(laid, a) + boxes[a].height if a < len(boxes) else bottom
    way = _curve(laid, places.x[a], begin, bottom, places.ends.get((a, b), places.x[b]), _top(laid, b))
    return way if b < len(boxes) else f"{way}V{laid.y + places.bottoms[places.row[b]]:.1f}"


def _curve(laid: Laid, x1: float, begin: float, y1: float, x2: float, y2: float) -> str:
    x1, x2 = x1 + laid.x, x2 + laid.x
    begin, y1, y2 = begin + laid.y, y1 + laid.y, y2 + laid.y
    if abs(x1 - x2) < 0.5:
        return f"M{x1:.1f} {begin:.1f}V{y2:.1f}"
    middle = (y1 + y2) / 2
    return f"M{x1:.1f} {begin:.1f}V{y1:.1f}C{x1:.1f} {middle:.1f} {x2:.1f} {middle:.1f} {x2:.1f} {y2:.1f}"


def _line(path: str, edge: tuple[int, int, object], ends: bool) -> str:
    tensor = edge[2]
    title = f"<title>{escape(tensor.text())}</title>" if tensor is not None else ""  # type: ignore[attr-defined]
    tip = ' marker-end="url(#tip)"' if ends else ""
    return f'<path d="{path}" fill="none" stroke="#7a8699"{tip}>{title}</path>'


def _drawn(box: Box, x: float, y: float, colour: Colour) -> str:
    dashed = "" if box.node.feeds_result else ' stroke-dasharray="4 3"'
    fill = "#fbfcfe" if box.inside else colour.of(box.node)
    rect = (
        f'<rect width="{box.width:.1f}" height="{box.height:.1f}" rx="5" fill="{fill}" '
        f'stroke="#9aa7bb"{dashed}/>'
    )
    inner = _drawn_level(box.inside, colour) if box.inside else ""
    title = f"<title>{escape(tip_of(box.node))}</title>"
    return f'<g transform="translate({x:.1f} {y:.1f})">{title}{rect}{_texts(box)}{inner}</g>'


def _texts(box: Box) -> str:
    if box.inside and len(box.lines) > 1:
        first, second = map(escape, box.lines)
        facts = f'<tspan dx="8" fill="{INK[1]}">{second}</tspan>'
        return f'<text x="8" y="{LINE:.0f}" fill="{INK[0]}">{first}{facts}</text>'
    return "".join(
        f'<text x="8" y="{LINE * (n + 1):.0f}" fill="{INK[min(n, 1)]}">{escape(line)}</text>'
        for n, line in enumerate(box.lines)
    )
