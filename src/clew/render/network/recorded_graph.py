"""Reads a graph back from JSON; the file may be damaged, malicious or from another version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clew.records.json_values import names, rows, shape, text, whole
from clew.records.network import Edge, Graph, Node, TensorInfo

KINDS = ("module", "op", "input", "output")


def read_graph(data: Any) -> Graph | None:
    """None if the nodes do not form a tree; edges to missing nodes are left out."""
    if not isinstance(data, Mapping):
        return None
    nodes = [_node(row) for row in rows(data.get("nodes"))]
    known = {node.id: node for node in nodes if node is not None}
    if not known or len(known) != len(nodes) or not _is_tree(known):
        return None
    edges = [_edge(row) for row in rows(data.get("edges"))]
    sound = [edge for edge in edges if edge is not None and {edge.source, edge.target} <= known.keys()]
    return Graph(text(data.get("name")) or "", tuple(known.values()), tuple(sound))


def _is_tree(nodes: Mapping[int, Node]) -> bool:
    """Every node is inside an existing one, and none inside itself."""
    outside = {node.id for node in nodes.values() if node.parent is None}
    for node in nodes.values():
        way: set[int] = set()
        at = node
        while at.id not in outside:
            above = nodes.get(at.parent) if at.parent is not None else None
            if at.id in way or above is None:
                return False
            way.add(at.id)
            at = above
        outside |= way
    return True


def _node(row: Mapping[str, Any]) -> Node | None:
    number, parent, kind = whole(row.get("id")), row.get("parent"), text(row.get("kind"))
    if number is None or number < 0 or kind not in KINDS or not (parent is None or whole(parent) is not None):
        return None
    return Node(
        number,
        parent,
        kind,
        text(row.get("label")) or "",
        text(row.get("type")) or "",
        text(row.get("path")) or "",
        tuple(t for t in map(_tensor, rows(row.get("outputs"))) if t is not None),
        **{name: _count(row.get(name)) for name in ("flops", "parameters", "saved")},
        feeds_result=row.get("feeds_result") is not False,
        file=text(row.get("file")),
        line=whole(row.get("line")),
        repeat=max(_count(row.get("repeat")), 1),
        hidden=row.get("hidden") is True,
    )


def _count(value: object) -> int:
    return max(whole(value) or 0, 0)


def _tensor(row: Mapping[str, Any]) -> TensorInfo | None:
    sizes = shape(row.get("shape"))
    if sizes is None:
        return None
    dims = names(row.get("dims"))
    return TensorInfo(
        sizes,
        text(row.get("dtype")) or "",
        text(row.get("device")) or "",
        row.get("requires_grad") is True,
        _count(row.get("bytes")),
        dims if len(dims) == len(sizes) else (),
    )


def _edge(row: Mapping[str, Any]) -> Edge | None:
    source, target, tensor = whole(row.get("source")), whole(row.get("target")), row.get("tensor")
    if source is None or target is None:
        return None
    return Edge(source, target, _tensor(tensor) if isinstance(tensor, Mapping) else None)
