"""Writes the graph of a network: a tree on the terminal, or the format that a file's suffix asks for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import IO

from clew.records.network import Graph, Node
from clew.render.network.graph_html import html_page
from clew.render.network.graph_levels import first_ops
from clew.render.network.graph_svg import svg
from clew.render.network.graphviz import dot
from clew.render.network.node_boxes import Colour
from clew.render.safe_text import neutral
from clew.render.screen import Screen
from clew.render.size_text import count, short
from clew.render.verdict_json import dumps


class GraphFormatError(ValueError):
    """A file name whose ending says nothing that can be drawn."""


def write_graph(graph: Graph, path: Path, *, colour: str = "flops", expand: bool = False) -> None:
    """Draw the graph in the format that the ending names. Raises `GraphFormatError` and `BundleNotBuilt`."""
    tint = Colour(graph, colour)
    drawings: dict[str, Callable[[], str]] = {
        ".json": lambda: dumps(graph.to_json()),
        ".dot": lambda: dot(graph, tint, expand=expand),
        ".gv": lambda: dot(graph, tint, expand=expand),
        ".svg": lambda: svg(graph, tint, expand=expand),
        ".html": lambda: html_page(graph, colour),
    }
    draw = drawings.get(path.suffix.lower())
    if draw is None:
        raise GraphFormatError(
            f"a graph is written as {', '.join(drawings)}, not {path.suffix or path.name!r}"
        )
    path.write_text(draw(), encoding="utf-8")


def render_tree(
    graph: Graph, *, stream: IO[str] | None = None, width: int | None = None, expand: bool = False
) -> None:
    """Modules as a tree, with the ops that run in each."""
    screen = Screen(stream, width)
    times = "x" if screen.glyphs.plain else "×"
    depths: dict[int, int] = {}
    for node in _in_order(graph):
        depth = depths[node.id] = depths.get(node.parent, -1) + 1 if node.parent is not None else 0
        if node.hidden and not expand:
            continue
        shape = node.outputs[0].text(times) if node.outputs else ""
        repeat = f" {times}{node.repeat}" if node.repeat > 1 and not expand else ""
        style = "" if node.kind == "module" else "cyan" if node.kind != "op" else "dim"
        label = neutral(node.label, 60) + repeat
        kind = f"  {neutral(node.type, 40)}" if node.kind == "module" and node.type != node.label else ""
        line = screen.text("  " * depth + label + kind, style if node.feeds_result else "yellow")
        tail = [
            shape,
            count(node.parameters) if node.parameters else "",
            short(node.flops, "FLOPs") if node.flops else "",
        ]
        screen.line(line, screen.text("  " + "  ".join(t for t in tail if t), "dim"))


def _in_order(graph: Graph) -> list[Node]:
    """Depth first, children in the order in which they began; without recursion."""
    children: dict[int | None, list[Node]] = {}
    for node in graph.nodes:
        children.setdefault(node.parent, []).append(node)
    starts = first_ops(graph.nodes)
    for siblings in children.values():
        siblings.sort(key=lambda n: starts.get(n.id, n.id))
    ends = [n for n in children.get(None, []) if n.kind != "input"]
    waiting = [*reversed([*(n for n in children.get(None, []) if n.kind == "input"), *ends])]
    order = []
    while waiting:
        node = waiting.pop()
        order.append(node)
        waiting += reversed(children.get(node.id, []))
    return order
