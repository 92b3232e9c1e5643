"""What every drawing of a graph needs: the boxes of one level, the edges between them, and colours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from clew.show.model_numbers import count, short
from clew.show.safe_text import cut, neutral
from clew.structure import Edge, Graph, Node, TensorInfo

_SCALES = {"flops": "flops", "memory": "saved", "parameters": "parameters"}
PALETTE = ("#f4f6fa", "#e6eef9", "#d3e3f6", "#bfd7f2", "#a9caee", "#92bce9")  # dark ink stays legible


class Colour:
    """A colour for each node by its share of something; `values` may come from a run, by module path."""

    def __init__(self, graph: Graph, by: str = "flops", values: Mapping[str, float] | None = None) -> None:
        self.by = by
        self._values = dict(values) if values is not None else None
        self._field = _SCALES.get(by, "flops")
        roots = [n.id for n in graph.nodes if n.parent is None and n.kind == "module"]
        whole = roots[0] if len(roots) == 1 else None  # holds everything: next to it all would be pale
        self._most = max((self._amount(n) for n in graph.nodes if n.id != whole), default=0.0)

    def of(self, node: Node) -> str:
        if node.kind in ("input", "output"):
            return "#e9f5ec"
        share = min(self._amount(node) / self._most, 1.0) if self._most else 0.0
        return PALETTE[min(int(share * len(PALETTE)), len(PALETTE) - 1)]

    def _amount(self, node: Node) -> float:
        if self._values is not None:
            return self._values.get(node.path, 0.0) if node.kind == "module" else 0.0
        return float(getattr(node, self._field)) * max(node.repeat, 1)


def lines_of(node: Node) -> tuple[str, str]:
    """What stands in a node's box: its name, and shape, parameters and work of all it stands for."""
    repeat = f" ×{node.repeat}" if node.repeat > 1 else ""
    each = f"{node.repeat} × " if node.repeat > 1 else ""
    kind = f"  {cut(neutral(node.type, 40), 24)}" if node.kind == "module" and node.type != node.label else ""
    facts = [
        node.outputs[0].text() if node.outputs else "",
        f"{each}{count(node.parameters)} params" if node.parameters else "",
        f"{each}{short(node.flops, 'FLOPs')}" if node.flops else "",
    ]
    return cut(neutral(node.label, 40), 28) + repeat + kind, " · ".join(fact for fact in facts if fact)


@dataclass
class Level:
    """The children of one module (or of the whole), and how tensors flow between them."""

    nodes: list[Node]
    edges: list[tuple[int, int, TensorInfo | None]]
    ranks: dict[int, int] = field(default_factory=dict)

    def lanes(self) -> dict[tuple[int, int], int]:
        """The edges that would run through other boxes, each with the number of a way beside them."""
        spans = {
            (a, b): (min(self.ranks[a], self.ranks[b]), max(self.ranks[a], self.ranks[b]))
            for a, b, _ in self.edges
            if self.ranks[b] - self.ranks[a] != 1
        }
        taken: list[list[tuple[int, int]]] = []
        found: dict[tuple[int, int], int] = {}
        for pair, (top, bottom) in sorted(spans.items(), key=lambda item: item[1][1] - item[1][0]):
            free = (n for n, lane in enumerate(taken) if all(bottom <= t or b <= top for t, b in lane))
            lane = next(free, len(taken))
            if lane == len(taken):
                taken.append([])
            taken[lane].append((top, bottom))
            found[pair] = lane
        return found


class Levels:
    """A graph taken apart by module: each level is small, whatever the size of the whole."""

    def __init__(self, graph: Graph, *, fold: bool = True) -> None:
        self.nodes = {n.id: n for n in graph.nodes}
        self.children: dict[int | None, list[Node]] = {}
        for node in graph.nodes:
            self.children.setdefault(node.parent, []).append(node)
        self._stands_in = self._folded() if fold else {}
        self._edges: dict[int | None, dict[tuple[int, int], TensorInfo | None]] = {}
        self._entries: dict[int, dict[int, TensorInfo | None]] = {}  # of a module: what gets its inputs
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
        for holder, inside in zip(target[depth:], target[depth + 1 :], strict=False):
            self._entries.setdefault(holder, {}).setdefault(inside, edge.tensor)

    def level(self, holder: int | None) -> Level:
        nodes = [n for n in self.children.get(holder, []) if n.id not in self._stands_in]
        edges: dict[tuple[int, int], TensorInfo | None] = {}
        for (a, b), tensor in self._edges.get(holder, {}).items():
            pair = (self._stands_in.get(a, a), self._stands_in.get(b, b))
            if pair[0] != pair[1]:
                edges.setdefault(pair, tensor)
        entries = {self._stands_in.get(i, i): t for i, t in self._entries.get(holder or 0, {}).items()}
        if holder is not None and len(entries) > 1:  # a residual connection from the module's own input
            port = Node(-holder - 1, holder, "input", "input", "", "", ())
            nodes = [port, *nodes]
            edges.update({(port.id, inside): tensor for inside, tensor in entries.items()})
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
