"""Writes the graph of a network: a tree on the terminal, or the format that a file's suffix asks for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import IO

from clew.records.network import Graph, Node
from clew.render.html_bundle import PageInfo, bundled_page
from clew.render.network.graph_layout import layout_json
from clew.render.network.graph_levels import Levels, first_ops
from clew.render.network.graph_svg import svg
from clew.render.network.node_boxes import Colour
from clew.render.number_text import count, short
from clew.render.safe_text import neutral
from clew.render.screen import Screen
from clew.render.verdict_json import dumps


class GraphFormatError(ValueError):
    """A file name whose suffix names no known format."""


def write_graph(graph: Graph, path: Path, *, colour: str = "flops", expand: bool = False) -> None:
    """Draw the graph in the format of the suffix. Raises `GraphFormatError` and `BundleNotBuilt`."""
    tint = Colour(graph, colour)
    drawings: dict[str, Callable[[], str]] = {
        ".json": lambda: dumps(graph.to_json()),
        ".dot": lambda: _dot(graph, tint, expand=expand),
        ".gv": lambda: _dot(graph, tint, expand=expand),
        ".svg": lambda: svg(graph, tint, expand=expand),
        ".html": lambda: _html_page(graph, colour),
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
    times = screen.glyphs.times
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
    """Depth first, children in the order in which they began; iterative."""
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


def _html_page(graph: Graph, colour: str) -> str:
    """It opens collapsed, coloured by `colour`, and needs no network. Raises `BundleNotBuilt`."""
    title = neutral(graph.name, 80)
    page: PageInfo = {"shows": "graph", "title": title, "about": "", "colour": colour}
    drawn = {**graph.to_json(), "layout": layout_json(graph)}
    return bundled_page(dumps({"page": page, "graph": drawn}, dense=True), title)


# ---- Graphviz --------------------------------------------------------------------------------


def _dot(graph: Graph, colour: Colour, *, expand: bool = False) -> str:
    """Collapsed to the modules of the outermost one; `expand` opens everything."""
    levels = Levels(graph, fold=not expand)
    opened = levels.with_children() if expand else levels.open_at_first()
    lines = [
        "digraph clew {",
        "  compound=true;",
        '  node [shape=box style="rounded,filled" fontname="Helvetica" fontsize=10];',
        '  edge [fontname="Helvetica" fontsize=8 color="#7a8699"];',
        *_boxes(levels, opened, colour),
        *_arrows(graph, levels, opened),
    ]
    return "\n".join([*lines, "}", ""])


def _boxes(levels: Levels, opened: set[int], colour: Colour) -> list[str]:
    lines: list[str] = []
    waiting: list[Node | str] = list(reversed(_own_nodes(levels, None)))
    while waiting:
        thing = waiting.pop()
        if isinstance(thing, str):
            lines.append(thing)
        elif thing.id in opened:
            lines.append(f'  subgraph cluster_{thing.id} {{ label={_dot_label(thing)}; color="#b9c4d6";')
            waiting += ["  }", *reversed(_own_nodes(levels, thing.id))]
        else:
            lines.append(f'  n{thing.id} [label={_dot_label(thing)} fillcolor="{colour.of(thing)}"];')
    return lines


def _own_nodes(levels: Levels, holder: int | None) -> list[Node]:
    """Without the ports of a module: Graphviz draws edges through to their source."""
    return [node for node in levels.level(holder).nodes if node.id >= 0]


def _arrows(graph: Graph, levels: Levels, opened: set[int]) -> list[str]:
    """Each edge between the innermost drawn boxes of its ends."""
    arrows: dict[tuple[int, int], str] = {}
    for edge in graph.edges:
        pair = (levels.drawn(edge.source, opened), levels.drawn(edge.target, opened))
        if pair[0] != pair[1]:
            arrows.setdefault(pair, edge.tensor.text() if edge.tensor else "")
    return [f"  n{a} -> n{b} [label={_quoted(text)}];" for (a, b), text in arrows.items()]


def _dot_label(node: Node) -> str:
    """Name and class on two lines, quoted."""
    repeat = f" ×{node.repeat}" if node.repeat > 1 else ""
    kind = f"\n{neutral(node.type, 60)}" if node.kind == "module" and node.type != node.label else ""
    return _quoted(f"{neutral(node.label, 60)}{repeat}{kind}")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
