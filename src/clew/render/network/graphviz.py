"""The graph in the DOT language of Graphviz: an open module is a cluster, a closed one a box."""

from __future__ import annotations

from clew.records.network import Graph, Node
from clew.render.network.graph_levels import Levels
from clew.render.network.node_boxes import Colour
from clew.render.safe_text import neutral


def dot(graph: Graph, colour: Colour, *, expand: bool = False) -> str:
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
    waiting: list[Node | str] = list(reversed(_own(levels, None)))
    while waiting:
        thing = waiting.pop()
        if isinstance(thing, str):
            lines.append(thing)
        elif thing.id in opened:
            lines.append(f'  subgraph cluster_{thing.id} {{ label={_quoted(label(thing))}; color="#b9c4d6";')
            waiting += ["  }", *reversed(_own(levels, thing.id))]
        else:
            lines.append(f'  n{thing.id} [label={_quoted(label(thing))} fillcolor="{colour.of(thing)}"];')
    return lines


def _own(levels: Levels, holder: int | None) -> list[Node]:
    """Without the ports of a module: Graphviz draws edges right through to where they come from."""
    return [node for node in levels.level(holder).nodes if node.id >= 0]


def _arrows(graph: Graph, levels: Levels, opened: set[int]) -> list[str]:
    """Each edge between the innermost boxes that are drawn for its ends."""
    arrows: dict[tuple[int, int], str] = {}
    for edge in graph.edges:
        pair = (levels.drawn(edge.source, opened), levels.drawn(edge.target, opened))
        if pair[0] != pair[1]:
            arrows.setdefault(pair, edge.tensor.text() if edge.tensor else "")
    return [f"  n{a} -> n{b} [label={_quoted(text)}];" for (a, b), text in arrows.items()]


def label(node: Node) -> str:
    """Name and class on two lines."""
    repeat = f" ×{node.repeat}" if node.repeat > 1 else ""
    kind = f"\n{neutral(node.type, 60)}" if node.kind == "module" and node.type != node.label else ""
    return f"{neutral(node.label, 60)}{repeat}{kind}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
