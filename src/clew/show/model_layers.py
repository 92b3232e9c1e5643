"""What every drawing of a graph needs: the boxes of one level, the edges between them, and colours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from clew.structure import Edge, Graph, Node, TensorInfo

_SCALES = {"flops": "flops", "memory": "saved", "parameters": "parameters"}
PALETTE = ("#f4f6fa", "#dbe7f6", "#b9d3f0", "#8fb9e6", "#6299d6", "#3d78bd")


class Colour:
    """A colour for each node by its share of something; `values` may come from a run, by module path."""

    def __init__(self, graph: Graph, by: str = "flops", values: Mapping[str, float] | None = None) -> None:
        self.by = by
        self._values = dict(values) if values is not None else None
        self._field = _SCALES.get(by, "flops")
        leaves = {n.id for n in graph.nodes} - {n.parent for n in graph.nodes}
        amounts = [self._amount(n) for n in graph.nodes if n.kind == "module" and n.id not in leaves]
        self._most = max([*amounts, *(self._amount(n) for n in graph.nodes if n.kind == "op")], default=0.0)

    def of(self, node: Node) -> str:
        if node.kind in ("input", "output"):
            return "#e9f5ec"
        share = self._amount(node) / self._most if self._most else 0.0
        return PALETTE[min(int(share * len(PALETTE)), len(PALETTE) - 1)]

    def _amount(self, node: Node) -> float:
        if self._values is not None:
            return self._values.get(node.path, 0.0) if node.kind == "module" else 0.0
        return float(getattr(node, self._field))


@dataclass
class Level:
    """The children of one module (or of the whole), and how tensors flow between them."""

    nodes: list[Node]
    edges: list[tuple[int, int, TensorInfo | None]]
    ranks: dict[int, int] = field(default_factory=dict)


class Levels:
    """A graph taken apart by module: each level is small, whatever the size of the whole."""

    def __init__(self, graph: Graph, *, fold: bool = True) -> None:
        self.nodes = {n.id: n for n in graph.nodes}
        self.children: dict[int | None, list[Node]] = {}
        for node in graph.nodes:
            self.children.setdefault(node.parent, []).append(node)
        self._stands_in = self._folded() if fold else {}
        self._edges: dict[int | None, dict[tuple[int, int], TensorInfo | None]] = {}
        for edge in graph.edges:
            self._lift(edge)

    def _folded(self) -> dict[int, int]:
        """Each hidden sibling, and the first of its kind, which is drawn for all of them."""
        found: dict[int, int] = {}
        for siblings in self.children.values():
            first: Node | None = None
            for node in siblings:
                if node.hidden and first is not None:
                    found[node.id] = first.id
                elif node.kind == "module":
                    first = node
        return found

    def chain(self, node: int) -> list[int]:
        """From the outermost module in to the node."""
        chain = [node]
        while (above := self.nodes[chain[-1]].parent) is not None:
            chain.append(above)
        return chain[::-1]

    def _lift(self, edge: Edge) -> None:
        """An edge between ops is drawn where the paths of the two part: between what holds each there."""
        source, target = self.chain(edge.source), self.chain(edge.target)
        depth = 0
        while depth < min(len(source), len(target)) and source[depth] == target[depth]:
            depth += 1
        if depth < len(source) and depth < len(target):
            holder = source[depth - 1] if depth else None
            pair = (source[depth], target[depth])
            self._edges.setdefault(holder, {}).setdefault(pair, edge.tensor)

    def level(self, holder: int | None) -> Level:
        nodes = [n for n in self.children.get(holder, []) if n.id not in self._stands_in]
        edges: dict[tuple[int, int], TensorInfo | None] = {}
        for (a, b), tensor in self._edges.get(holder, {}).items():
            pair = (self._stands_in.get(a, a), self._stands_in.get(b, b))
            if pair[0] != pair[1]:
                edges.setdefault(pair, tensor)
        level = Level(nodes, [(a, b, t) for (a, b), t in edges.items()])
        level.ranks = ranks_of([n.id for n in nodes], list(edges))
        return level

    def drawn(self, node: int, opened: set[int]) -> int:
        """The box that this node is seen as: its innermost holder all of whose holders are open."""
        for number in self.chain(node):
            number = self._stands_in.get(number, number)
            if number not in opened:
                return number
        return node

    def open_at_first(self) -> set[int]:
        """The model itself, if there is one call around all: its modules are what a person wants to see."""
        roots = [n.id for n in self.children.get(None, []) if n.kind == "module"]
        return set(roots) if len(roots) == 1 else set()

    def with_children(self) -> set[int]:
        return {holder for holder in self.children if holder is not None}


def ranks_of(nodes: list[int], edges: list[tuple[int, int]]) -> dict[int, int]:
    """Longest way from a start, for layered drawing; a cycle (a module used twice) is cut where it closes."""
    out: dict[int, list[int]] = {n: [] for n in nodes}
    waiting_for = dict.fromkeys(nodes, 0)
    for a, b in edges:
        out[a].append(b)
        waiting_for[b] += 1
    ranks = dict.fromkeys(nodes, 0)
    ready = [n for n in nodes if not waiting_for[n]]
    left = set(nodes)
    while left:
        if not ready:
            ready = [min(left)]  # all that is left is in a cycle
        node = ready.pop()
        if node not in left:
            continue
        left.discard(node)
        for following in out[node]:
            if following in left:
                ranks[following] = max(ranks[following], ranks[node] + 1)
                waiting_for[following] -= 1
                if waiting_for[following] <= 0:
                    ready.append(following)
    return ranks
