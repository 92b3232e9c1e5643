"""Splits a graph by module: the boxes of one level, and how tensors flow between them."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from dataclasses import dataclass, replace
from functools import cached_property

from clew.records.network import Edge, Graph, Node, TensorInfo
from clew.render.network.box_places import Grid, grid_of
from clew.render.network.box_rows import BoxRows, rows_of
from clew.render.network.graph_loops import loops_of
from clew.render.network.node_boxes import Box, box_of

MOST_PORTS = 8  # inputs of a module that are drawn separately inside it

Pair = tuple[int, int]
Flow = dict[Pair, TensorInfo | None]


@dataclass(frozen=True)
class Level:
    """The children of one module (or of the whole graph), the tensors between them, and their places."""

    nodes: list[Node]
    edges: list[tuple[int, int, TensorInfo | None]]
    rows: BoxRows  # places are the nodes, in their order, then passages
    boxes: list[Box]
    grid: Grid

    def tensor_of(self, line: int) -> TensorInfo | None:
        """The tensor along one of the grid's lines."""
        return self.edges[self.rows.lines[line][2]][2]


class Levels:
    """Each level is small, whatever the size of the graph, and most are alike: they are ordered once."""

    def __init__(self, graph: Graph, *, fold: bool = True) -> None:
        self.nodes = {n.id: n for n in _inside(graph)}
        self.children: dict[int | None, list[Node]] = {}
        for node in self.nodes.values():
            self.children.setdefault(node.parent, []).append(node)
        self._flows: dict[int | None, Flow] = {}
        self._entries: dict[int, dict[tuple[int, int], TensorInfo | None]] = {}  # (from outside, to inside)
        self._exits: dict[int, dict[int, TensorInfo | None]] = {}
        for edge in graph.edges:
            self._lift(edge)
        self.reused: set[int] = set()  # represent several calls of the same module
        self.stands_in: dict[int, int] = {}  # nodes that are not drawn, and what is drawn instead
        self._turns: dict[int, tuple[int, int]] = {}  # for nodes in a loop: the loop, and which iteration
        self._known: dict[Hashable, BoxRows] = {}
        self._grids: dict[Hashable, Grid] = {}
        if fold:
            self._fold_repeats()
            for holder in self.children:
                self._fold_loops(holder)
        else:
            self.nodes = {number: replace(node, repeat=1) for number, node in self.nodes.items()}

    # -- taking apart --

    def chain(self, node: int) -> list[int]:
        """From the outermost module to the node."""
        chain = [node]
        while (above := self.nodes[chain[-1]].parent) is not None:
            chain.append(above)
        return chain[::-1]

    def _lift(self, edge: Edge) -> None:
        """An edge between ops is drawn where their paths part: between the boxes that contain them there."""
        source, target = self.chain(edge.source), self.chain(edge.target)
        depth = 0
        while depth < min(len(source), len(target)) and source[depth] == target[depth]:
            depth += 1
        if depth >= len(source) or depth >= len(target):
            return
        holder = source[depth - 1] if depth else None
        self._flows.setdefault(holder, {}).setdefault((source[depth], target[depth]), edge.tensor)
        for around, inside in zip(target[depth:], target[depth + 1 :], strict=False):
            self._entries.setdefault(around, {}).setdefault((source[depth], inside), edge.tensor)
        for around, inside in zip(source[depth:], source[depth + 1 :], strict=False):
            self._exits.setdefault(around, {}).setdefault(inside, edge.tensor)

    # -- drawing once --

    def _fold_repeats(self) -> None:
        """Hidden siblings right after the first of their kind are drawn as that one.

        If there is something between them they are not: when folded, the lines to it would run in circles.
        """
        for holder, siblings in self.children.items():
            inherited = holder is not None and self.nodes[holder].hidden  # then all inside it are hidden
            repeats: dict[int, int] = {}
            head: int | None = None
            for node in sorted(siblings, key=self._place_in_time):
                alike = head is not None and (
                    not inherited or self._patterns[node.id] == self._patterns[head]
                )
                if head is not None and node.hidden and alike:
                    self._stand_in(node.id, head)
                    repeats[head] += 1
                else:
                    head = node.id if node.kind == "module" else None
                    repeats |= {node.id: 1} if node.kind == "module" else {}
            for number, repeat in repeats.items():
                self.nodes[number] = replace(self.nodes[number], repeat=repeat)

    def _fold_loops(self, holder: int | None) -> None:
        siblings = [n for n in self.children[holder] if n.id not in self.stands_in and n.kind in _RUNS]
        siblings.sort(key=lambda n: self._starts.get(n.id, n.id))
        wires: dict[int, list[Hashable]] = {}
        for a, b in self._flows.get(holder, ()):
            wires.setdefault(self.stands_in.get(b, b), []).append(self.stands_in.get(a, a))
        for outside, inside in self._entries.get(holder, ()) if holder is not None else ():
            wires.setdefault(self.stands_in.get(inside, inside), []).append(("outside", outside))
        patterns = [self._patterns[n.id] for n in siblings]
        for turns in loops_of([n.id for n in siblings], patterns, wires):
            for number, turn in enumerate(turns):
                for thing, first in zip(turn, turns[0], strict=True):
                    self._turns[thing] = (turns[0][0], number)
                    if number:
                        self._stand_in(thing, first)
            for first in turns[0]:
                node = self.nodes[first]
                self.nodes[first] = replace(node, repeat=node.repeat * len(turns))

    def _stand_in(self, hidden: int, shown: int) -> None:
        self.stands_in[hidden] = shown
        if self.nodes[hidden].kind == "module" and self.nodes[hidden].path == self.nodes[shown].path:
            self.reused.add(shown)

    @cached_property
    def _starts(self) -> dict[int, int]:
        return first_ops(self.nodes.values())

    @cached_property
    def _patterns(self) -> dict[int, int]:
        """For each node a number that it shares with all nodes that look the same, down to the ops."""
        numbers: dict[Hashable, int] = {}
        patterns: dict[int, int] = {}
        for node in sorted(self.nodes.values(), key=lambda n: -n.id):  # children come after their parents
            below = tuple(patterns[c.id] for c in self.children.get(node.id, ()) if c.id in patterns)
            above, _, last = node.label.rpartition(".")
            name = above if last.isdigit() else node.label
            shapes = tuple(t.shape for t in node.outputs)
            own = (node.kind, name, node.type, shapes, node.parameters, node.flops, below)
            patterns[node.id] = numbers.setdefault(own, len(numbers))
        return patterns

    # -- one level --

    def level(self, holder: int | None, most: int | None = None) -> Level:
        """`most` is the maximum number of boxes."""
        flow = self._folded_flow(holder)
        ends = {end for pair in flow for end in pair}
        nodes = [self._named(n.id) for n in self.children.get(holder, []) if n.id not in self.stands_in]
        ports = [*self._in_ports(holder, flow), *self._out_ports(holder, flow)]
        nodes = [n for n in nodes if n.kind != "module" or self.children.get(n.id) or n.id in ends] or nodes
        nodes = sorted([*nodes, *ports], key=self._place_in_time)[:most]
        kept = {n.id: place for place, n in enumerate(nodes)}
        edges = [(a, b, tensor) for (a, b), tensor in flow.items() if a in kept and b in kept]
        rows = self._ordered(nodes, [(kept[a], kept[b]) for a, b, _ in edges])
        boxes = [self._box(node) for node in nodes]
        return Level(nodes, edges, rows, boxes, self._placed(rows, boxes))

    def _box(self, node: Node) -> Box:
        return box_of(node, reused=node.id in self.reused, opens=bool(self.children.get(node.id)))

    def _named(self, node: int) -> Node:
        """With the number of the call of its module, as in the table, unless it represents several."""
        found, call = self.nodes[node], self._calls.get(node, 1)
        again = call > 1 and node not in self.reused
        return replace(found, label=f"{found.label} (call {call})") if again else found

    @cached_property
    def _calls(self) -> dict[int, int]:
        """For each call of a module that is called more than once: its number."""
        so_far: dict[str, int] = {}
        calls: dict[int, int] = {}
        for node in self.nodes.values():
            if node.kind == "module":
                calls[node.id] = so_far[node.path] = so_far.get(node.path, 0) + 1
        return calls

    def _place_in_time(self, node: Node) -> tuple[int, int]:
        return {"input": 0, "output": 2}.get(node.kind, 1), self._starts.get(node.id, node.id)

    def count(self, holder: int | None) -> int:
        return sum(n.id not in self.stands_in for n in self.children.get(holder, []))

    def _folded_flow(self, holder: int | None) -> Flow:
        flow: Flow = {}
        for (a, b), tensor in self._flows.get(holder, {}).items():
            loop, turn = self._turns.get(a, (None, 0))
            other, later = self._turns.get(b, (None, 0))
            if loop is not None and loop == other and turn != later:
                continue  # from one iteration into the next
            pair = (self.stands_in.get(a, a), self.stands_in.get(b, b))
            if pair[0] != pair[1]:
                flow.setdefault(pair, tensor)
        return flow

    def _in_ports(self, holder: int | None, flow: Flow) -> list[Node]:
        """The module's own inputs, if it has several, or one that is used in several places (a residual)."""
        if holder is None:
            return []
        entries: dict[int, dict[int, TensorInfo | None]] = {}
        for (outside, inside), tensor in self._entries.get(holder, {}).items():
            known = entries.setdefault(self.stands_in.get(outside, outside), {})
            known.setdefault(self.stands_in.get(inside, inside), tensor)
        if len(entries) > MOST_PORTS:
            entries = {-1: {inside: t for ways in entries.values() for inside, t in ways.items()}}
        if len(entries) <= 1 and all(len(ways) <= 1 for ways in entries.values()):
            return []
        ports = []
        for number, (outside, ways) in enumerate(entries.items()):
            label = self._port_label(outside) if len(entries) > 1 else "input"
            tensor = next(iter(ways.values())) if outside >= 0 else None
            ports.append(_port(-number - 1, holder, "input", label, tensor))
            flow.update({(ports[-1].id, inside): tensor for inside, tensor in ways.items()})
        return ports

    def _port_label(self, outside: int) -> str:
        node = self._named(outside)
        return node.label if node.kind == "input" else f"from {node.label}"

    def _out_ports(self, holder: int | None, flow: Flow) -> list[Node]:
        """If results leave from several places inside, one box that they go to."""
        if holder is None:
            return []
        exits = {self.stands_in.get(i, i): t for i, t in self._exits.get(holder, {}).items()}
        if len(exits) <= 1:
            return []
        port = _port(-MOST_PORTS - 2, holder, "output", "output", None)
        flow.update({(inside, port.id): tensor for inside, tensor in exits.items()})
        return [port]

    def _ordered(self, nodes: list[Node], edges: list[Pair]) -> BoxRows:
        first = tuple(n for n, node in enumerate(nodes) if node.kind == "input")
        last = tuple(n for n, node in enumerate(nodes) if node.kind == "output")
        key = (len(nodes), tuple(edges), first, last)
        if key not in self._known:
            self._known[key] = rows_of(len(nodes), edges, first, last)
        return self._known[key]

    def _placed(self, rows: BoxRows, boxes: list[Box]) -> Grid:
        widths = tuple(box.width for box in boxes)
        key = (id(rows), widths)  # equal ones are the same tensor
        if key not in self._grids:
            self._grids[key] = grid_of(rows, widths)
        return self._grids[key]

    # -- what is open --

    def drawn(self, node: int, opened: set[int]) -> int:
        """The box that shows this node: its innermost container all of whose containers are open."""
        for number in self.chain(node):
            number = self.stands_in.get(number, number)
            if number not in opened:
                return number
        return node

    def open_at_first(self) -> set[int]:
        """The model itself, if one call contains everything: people want to see its modules."""
        roots = [n.id for n in self.children.get(None, []) if n.kind == "module"]
        return set(roots) if len(roots) == 1 else set()

    def with_children(self) -> set[int]:
        return {holder for holder in self.children if holder is not None}


_RUNS = ("op", "module")


def _inside(graph: Graph) -> list[Node]:
    """Inputs and output are drawn inside the model if one call contains everything: nearest to their use."""
    outermost = [n for n in graph.nodes if n.parent is None and n.kind in _RUNS]
    if len(outermost) != 1 or outermost[0].kind != "module":
        return list(graph.nodes)
    root = outermost[0].id
    if not any(n.parent == root for n in graph.nodes):
        return list(graph.nodes)
    return [replace(n, parent=root) if n.kind in ("input", "output") else n for n in graph.nodes]


def _port(number: int, holder: int, kind: str, label: str, tensor: TensorInfo | None) -> Node:
    return Node(number, holder, kind, label, "", "", (tensor,) if tensor is not None else ())


def first_ops(nodes: Collection[Node]) -> dict[int, int]:
    """When each module began: the number of the first op at or below it."""
    parent = {n.id: n.parent for n in nodes}
    starts: dict[int, int] = {}
    for node in nodes:
        if node.kind == "op":
            starts[node.id] = node.id
            above = node.parent
            while above is not None and starts.get(above, node.id + 1) > node.id:
                starts[above] = node.id
                above = parent.get(above)
    return starts
