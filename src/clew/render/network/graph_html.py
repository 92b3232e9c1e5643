"""The graph as one HTML file that needs nothing else: it opens collapsed, a click opens a module.

Rows and their order are worked out here; the page only places and draws the levels that are open.
"""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from typing import Any

from clew.records.network import Graph, Node
from clew.render.network.graph_levels import Levels
from clew.render.network.node_boxes import Colour, box_width, lines_of, tip_of
from clew.render.safe_text import neutral

MOST = 400  # boxes of one level; a longer one ends with how many are left


def html_page(graph: Graph, colour: Colour) -> str:
    """Everything inlined; no network, no library."""
    levels = Levels(graph)
    data = {
        "open": sorted(levels.open_at_first()),
        "levels": {"" if h is None else str(h): _level(levels, h, colour) for h in levels.within_reach()},
    }
    # Within a script element only tags are dangerous.
    inlined = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    title = escape(neutral(graph.name, 80))
    page = Path(__file__).with_name("model_page.html").read_text(encoding="utf-8")
    return page.replace("@TITLE@", title).replace("@BY@", escape(colour.by)).replace("@DATA@", inlined)


def _level(levels: Levels, holder: int | None, colour: Colour) -> dict[str, Any]:
    level = levels.level(holder, MOST)
    texts = [tensor.text() if tensor is not None else "" for _, _, tensor in level.edges]
    return {
        "nodes": [_node(n, levels, colour) for n in level.nodes],
        "rows": level.rows.rows,
        "lines": [[a, b, texts[edge]] for a, b, edge in level.rows.lines],
        "more": max(levels.count(holder) - MOST, 0),
    }


def _node(node: Node, levels: Levels, colour: Colour) -> list[Any]:
    first, second = lines_of(node, reused=node.id in levels.reused)
    opens = bool(levels.children.get(node.id))
    width = round(box_width([f"+ {first}" if opens else first, second]), 1)
    return [node.id, width, first, second, tip_of(node), colour.of(node), int(opens), int(node.feeds_result)]
