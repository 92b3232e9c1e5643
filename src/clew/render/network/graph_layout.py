"""The graph layout sent to the browser: every level that can be opened, with the positions of its boxes.

The browser does no layout. It draws the levels that are open, and makes columns and rows wide
enough for what is open inside them (ui/src/draw/graph_grid.ts), as graph_svg.py does. For modules that look
the same, the grid and the texts are written once.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import asdict
from typing import Annotated, Any, NamedTuple, TypedDict

from clew.records.network import Graph, Node, TensorInfo
from clew.render.network.box_places import Grid
from clew.render.network.graph_levels import Level, Levels
from clew.render.network.node_boxes import Box

MOST = 2000  # boxes of one level; a longer level ends with the number left out


class LayoutGrid(TypedDict):
    """The places of a level: boxes first, then passages, where a long line goes by between boxes."""

    rows: Annotated[list[list[int]], "from top to bottom, each from left to right"]
    x: Annotated[list[float], "centres, while all boxes are closed"]
    lines: Annotated[list[tuple[int, int, float]], "from, to, and how far from the centre of `to` it ends"]


class LayoutBox(NamedTuple):
    """What a node looks like, in pixels and two lines of text."""

    width: float  # while it is closed
    height: float
    title: float  # width of its title when it is open
    first: str
    second: str


class LayoutPort(TypedDict):
    """Where tensors enter or leave a module: a box that is not in the graph itself."""

    id: int
    kind: str
    label: str
    outputs: Annotated[list[dict[str, Any]], list[TensorInfo]]


class LayoutLevel(TypedDict):
    """The boxes of one module; numbers refer to the tables of the layout."""

    grid: int
    nodes: Annotated[list[int], "below zero: one of the ports"]
    boxes: list[int]
    tensors: Annotated[list[int], "of each line of the grid"]
    ports: list[LayoutPort]
    more: Annotated[int, "nodes that are not drawn"]


class GraphLayout(TypedDict):
    """The layout of a graph, by module; the key of the outermost level is empty."""

    first: Annotated[list[int], "modules that are open at first"]
    levels: dict[str, LayoutLevel]
    unfolded: Annotated[dict[str, LayoutLevel], "where repeated blocks are drawn once: all of them"]
    stands_in: Annotated[dict[str, int], "nodes that are not drawn, and what is drawn for each"]
    repeats: dict[str, int]
    grids: list[LayoutGrid]
    boxes: list[LayoutBox]
    tensors: list[str]


def layout_json(graph: Graph) -> GraphLayout:
    """`levels` draws repeated blocks once, `unfolded` one by one where that makes a difference."""
    folded, unfolded = Levels(graph), Levels(graph, fold=False)
    tables = _Tables()
    repeating = {folded.nodes[hidden].parent for hidden in folded.stands_in}
    return {
        "first": sorted(folded.open_at_first()),
        "levels": {_key(holder): _level(folded, holder, tables) for holder in folded.children},
        "unfolded": {_key(holder): _level(unfolded, holder, tables) for holder in repeating},
        "stands_in": {str(hidden): shown for hidden, shown in folded.stands_in.items()},
        "repeats": {str(node.id): node.repeat for node in folded.nodes.values() if node.repeat > 1},
        "grids": tables.grids,
        "boxes": tables.boxes,
        "tensors": tables.tensors,
    }


class _Tables:
    """What levels have in common, each written once and referenced by its number."""

    def __init__(self) -> None:
        self.grids: list[LayoutGrid] = []
        self.boxes: list[LayoutBox] = []
        self.tensors: list[str] = []
        self._numbers: dict[Hashable, int] = {}

    def grid(self, grid: Grid) -> int:
        written: LayoutGrid = {"rows": grid.rows, "x": grid.x, "lines": grid.lines}
        key = (str(grid.rows), tuple(grid.x), tuple(grid.lines))
        return self._number(("grid", key), self.grids, written)

    def box(self, box: Box) -> int:
        first, *second = box.lines
        row = LayoutBox(box.width, box.height, box.title, first, second[0] if second else "")
        return self._number(("box", box), self.boxes, row)

    def tensor(self, text: str) -> int:
        return self._number(("tensor", text), self.tensors, text)

    def _number(self, key: Hashable, table: list[Any], written: Any) -> int:
        if key not in self._numbers:
            self._numbers[key] = len(table)
            table.append(written)
        return self._numbers[key]


def _key(holder: int | None) -> str:
    """JSON keys are text; the outermost level has an empty one."""
    return "" if holder is None else str(holder)


def _level(levels: Levels, holder: int | None, tables: _Tables) -> LayoutLevel:
    level = levels.level(holder, MOST)
    return {
        "grid": tables.grid(level.grid),
        "nodes": [node.id for node in level.nodes],
        "boxes": [tables.box(box) for box in level.boxes],
        "tensors": [tables.tensor(_text(level, line)) for line in range(len(level.grid.lines))],
        "ports": [_port(node) for node in level.nodes if node.id < 0],
        "more": max(levels.count(holder) - MOST, 0),
    }


def _text(level: Level, line: int) -> str:
    tensor = level.tensor_of(line)
    return f"{tensor.text()} {tensor.dtype}" if tensor is not None else ""


def _port(node: Node) -> LayoutPort:
    outputs = [asdict(tensor) for tensor in node.outputs]
    return {"id": node.id, "kind": node.kind, "label": node.label, "outputs": outputs}
