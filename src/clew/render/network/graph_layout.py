"""The graph layout sent to the browser: every level that can be opened, with the positions of its boxes.

The browser does not lay anything out. It draws the levels that are open, and makes columns and rows wide
enough for what is open inside them (ui/src/draw/graph_grid.ts), as graph_svg.py does. Of modules that look
the same, the grid and the texts are written once.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import asdict
from typing import Any

from clew.records.network import Graph, Node
from clew.render.network.box_places import Grid
from clew.render.network.graph_levels import Level, Levels
from clew.render.network.node_boxes import Box

MOST = 2000  # boxes of one level; a longer one ends with how many are left


def layout_json(graph: Graph) -> dict[str, Any]:
    """`levels` draws what repeats once, `unfolded` one by one where that makes a difference."""
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
    """What levels have in common, each written once; levels name it by its number."""

    def __init__(self) -> None:
        self.grids: list[dict[str, Any]] = []
        self.boxes: list[list[Any]] = []
        self.tensors: list[str] = []
        self._numbers: dict[Hashable, int] = {}

    def grid(self, grid: Grid) -> int:
        written = {"rows": grid.rows, "x": grid.x, "lines": grid.lines}
        key = (str(grid.rows), tuple(grid.x), tuple(grid.lines))
        return self._number(("grid", key), self.grids, written)

    def box(self, box: Box) -> int:
        first, *second = box.lines
        row = [box.width, box.height, box.title, first, second[0] if second else ""]
        return self._number(("box", box), self.boxes, row)

    def tensor(self, text: str) -> int:
        return self._number(("tensor", text), self.tensors, text)

    def _number(self, key: Hashable, table: list[Any], written: Any) -> int:
        if key not in self._numbers:
            self._numbers[key] = len(table)
            table.append(written)
        return self._numbers[key]


def _key(holder: int | None) -> str:
    """JSON has text for keys; the outermost level has none."""
    return "" if holder is None else str(holder)


def _level(levels: Levels, holder: int | None, tables: _Tables) -> dict[str, Any]:
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


def _port(node: Node) -> dict[str, Any]:
    """Where tensors enter or leave a module: a box that the graph itself does not have."""
    outputs = [asdict(tensor) for tensor in node.outputs]
    return {"id": node.id, "kind": node.kind, "label": node.label, "outputs": outputs}
