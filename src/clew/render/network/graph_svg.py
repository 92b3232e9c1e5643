"""The graph as an SVG: nested boxes, laid out level by level from the inside out.

A level is a module's own children: few, whatever the size of the whole. Laying out one level at a
time keeps thousands of ops drawable in a moment.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from clew.records.network import Graph, Node, TensorInfo
from clew.render.network.box_places import Places, fit
from clew.render.network.graph_levels import Level, Levels
from clew.render.network.node_boxes import HEAD, LINE, PAD, POINTS, Box, Colour, tip_of
from clew.render.safe_text import neutral

INK = ("#1c2635", "#56637a")
FONTS = "Helvetica, Arial, sans-serif"


@dataclass
class Drawn:
    """A node with what is drawn of it."""

    node: Node
    width: float
    height: float
    lines: tuple[str, ...]
    inside: Laid | None = None


@dataclass
class Laid:
    """A level whose boxes have their places; (x, y) is where the places begin."""

    level: Level
    boxes: list[Drawn]
    places: Places
    x: float
    y: float
    width: float

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
    boxes = [_drawing(levels, node, box, opened) for node, box in zip(level.nodes, level.boxes, strict=True)]
    places = fit(level.grid, [b.width for b in boxes], [b.height for b in boxes])
    width = max(places.width + 2 * PAD, least)
    return Laid(level, boxes, places, (width - places.width) / 2, PAD if holder is None else HEAD, width)


def _drawing(levels: Levels, node: Node, box: Box, opened: set[int]) -> Drawn:
    if node.id not in opened or not levels.children.get(node.id):
        return Drawn(node, box.width, box.height, box.lines)
    inside = _laid_out(levels, node.id, opened, box.title)
    return Drawn(node, inside.width, inside.height, box.lines, inside)


def _drawn_level(laid: Laid, colour: Colour) -> str:
    """Lines first: whatever happens, no line strikes out a label."""
    row = laid.level.grid.row
    lines = [
        _line(_way(laid, row, a, b, end), laid.level.tensor_of(n), b < len(laid.boxes))
        for n, (a, b, end) in enumerate(laid.level.grid.lines)
    ]
    tops = [laid.y + laid.places.tops[row[n]] for n in range(len(laid.boxes))]
    boxes = [
        _drawn(box, laid.x + laid.places.x[n] - box.width / 2, tops[n], colour)
        for n, box in enumerate(laid.boxes)
    ]
    return "".join([*lines, *boxes])


def _way(laid: Laid, row: list[int], a: int, b: int, end: float) -> str:
    """From the bottom of its row over to its place in the next, and on through that if it is a passage."""
    places, boxes = laid.places, laid.boxes
    top, bottom = places.tops[row[a]], places.bottoms[row[a]]
    if row[a] > row[b]:  # back up, which only a graph with a cycle has
        return _curve(laid, places.x[a], top, top, places.x[b], places.bottoms[row[b]])
    begin = top + boxes[a].height if a < len(boxes) else bottom
    way = _curve(laid, places.x[a], begin, bottom, places.x[b] + end, places.tops[row[b]])
    return way if b < len(boxes) else f"{way}V{laid.y + places.bottoms[row[b]]:.1f}"


def _curve(laid: Laid, x1: float, begin: float, y1: float, x2: float, y2: float) -> str:
    x1, x2 = x1 + laid.x, x2 + laid.x
    begin, y1, y2 = begin + laid.y, y1 + laid.y, y2 + laid.y
    if abs(x1 - x2) < 0.5:
        return f"M{x1:.1f} {begin:.1f}V{y2:.1f}"
    middle = (y1 + y2) / 2
    return f"M{x1:.1f} {begin:.1f}V{y1:.1f}C{x1:.1f} {middle:.1f} {x2:.1f} {middle:.1f} {x2:.1f} {y2:.1f}"


def _line(path: str, tensor: TensorInfo | None, ends: bool) -> str:
    title = f"<title>{escape(tensor.text())}</title>" if tensor is not None else ""
    tip = ' marker-end="url(#tip)"' if ends else ""
    return f'<path d="{path}" fill="none" stroke="#7a8699"{tip}>{title}</path>'


def _drawn(box: Drawn, x: float, y: float, colour: Colour) -> str:
    dashed = "" if box.node.feeds_result else ' stroke-dasharray="4 3"'
    fill = "#fbfcfe" if box.inside else colour.of(box.node)
    rect = (
        f'<rect width="{box.width:.1f}" height="{box.height:.1f}" rx="5" fill="{fill}" '
        f'stroke="#9aa7bb"{dashed}/>'
    )
    inner = _drawn_level(box.inside, colour) if box.inside else ""
    title = f"<title>{escape(tip_of(box.node))}</title>"
    return f'<g transform="translate({x:.1f} {y:.1f})">{title}{rect}{_texts(box)}{inner}</g>'


def _texts(box: Drawn) -> str:
    if box.inside and len(box.lines) > 1:
        first, second = map(escape, box.lines)
        facts = f'<tspan dx="8" fill="{INK[1]}">{second}</tspan>'
        return f'<text x="8" y="{LINE:.0f}" fill="{INK[0]}">{first}{facts}</text>'
    return "".join(
        f'<text x="8" y="{LINE * (n + 1):.0f}" fill="{INK[min(n, 1)]}">{escape(line)}</text>'
        for n, line in enumerate(box.lines)
    )
