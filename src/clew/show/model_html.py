"""The graph as one HTML file that needs nothing else: it opens collapsed, a click opens a module.

The levels are worked out here; the page only places and draws those that are open.
"""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from typing import Any

from clew.show.model_layers import Colour, Levels, lines_of
from clew.show.model_numbers import size
from clew.show.safe_text import neutral
from clew.structure import Graph, Node

MOST = 400  # boxes of one level; a longer one ends with how many are left


def html_page(graph: Graph, colour: Colour) -> str:
    """Everything inlined; no network, no library."""
    levels = Levels(graph)
    holders: list[int | None] = [None, *sorted(levels.with_children())]
    data = {
        "open": sorted(levels.open_at_first()),
        "levels": {"" if h is None else str(h): _level(levels, h, colour) for h in holders},
    }
    # Within a script element only tags are dangerous.
    inlined = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    title = escape(neutral(graph.name, 80))
    page = Path(__file__).with_name("model_page.html").read_text(encoding="utf-8")
    return page.replace("@TITLE@", title).replace("@BY@", escape(colour.by)).replace("@DATA@", inlined)


def _level(levels: Levels, holder: int | None, colour: Colour) -> dict[str, Any]:
    level = levels.level(holder)
    kept = {n.id for n in level.nodes[:MOST]}
    lanes = level.lanes()
    return {
        "nodes": [_node(n, level.ranks[n.id], levels, colour) for n in level.nodes[:MOST]],
        "edges": [
            [a, b, t.text() if t else "", lanes.get((a, b), -1)]
            for a, b, t in level.edges
            if a in kept and b in kept
        ],
        "more": len(level.nodes) - len(kept),
    }


def _node(node: Node, rank: int, levels: Levels, colour: Colour) -> list[Any]:
    where = f"{node.file}:{node.line}" if node.file else ""
    kept = f"{size(node.saved)} kept for backward" if node.saved else ""
    idle = "" if node.feeds_result else "does not feed the result"
    tip = "\n".join(neutral(p, 200) for p in (node.path or node.label, node.type, kept, where, idle) if p)
    opens = int(bool(levels.children.get(node.id)))
    first, second = lines_of(node)
    return [node.id, rank, first, second, tip, colour.of(node), opens, int(node.feeds_result)]
