"""Reads a graph back from JSON; the file may be damaged, malicious or from another version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from clew.records.codec import fitting
from clew.records.json_values import rows, text
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
    sound = [edge for edge in edges if {edge.source, edge.target} <= known.keys()]
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
    node = replace(Node(-1, None, "", "", "", "", ()), **fitting(Node, row))
    lost = row.get("parent") is not None and node.parent is None
    if node.id < 0 or node.kind not in KINDS or lost:
        return None
    return replace(
        node,
        outputs=tuple(_sound(tensor) for tensor in node.outputs if _has_size(tensor)),
        flops=max(node.flops, 0),
        parameters=max(node.parameters, 0),
        saved=max(node.saved, 0),
        repeat=max(node.repeat, 1),
    )


def _has_size(tensor: TensorInfo) -> bool:
    return all(size >= 0 for size in tensor.shape)


def _sound(tensor: TensorInfo) -> TensorInfo:
    dims = tensor.dims if len(tensor.dims) == len(tensor.shape) else ()
    return replace(tensor, bytes=max(tensor.bytes, 0), dims=dims)


def _edge(row: Mapping[str, Any]) -> Edge:
    edge = replace(Edge(-1, -1), **fitting(Edge, row))
    if edge.tensor is None:
        return edge
    return replace(edge, tensor=_sound(edge.tensor) if _has_size(edge.tensor) else None)
