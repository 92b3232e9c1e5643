"""How the layers of a model hang together: what one hands to the next, as the autograd graph has it.

The order of modules does not tell whether there was an activation function between two of them, nor
whether a sum or a branch was; the graph does. It is looked at in the first measured forwards only,
and nothing that a node saved is touched.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd
from torch.nn.modules.dropout import _DropoutNd
from torch.nn.modules.instancenorm import _InstanceNorm

from clew.attach.frames import user_line
from clew.attach.guard import Guard
from clew.attach.models import Root
from clew.attach.sink import Sink

LOOKS = 2  # training forwards of each root; a structure that depends on the data is not judged anyway
NEAR = 8  # autograd nodes between a layer and the function that its output goes into
WALKED = 20_000  # autograd nodes counted, at most
AFFINE = (nn.Linear, _ConvNd)
NORMS = (_BatchNorm, _InstanceNorm)

# Nodes that only move values. In training a batch normalisation is one more affine map.
MOVING = {
    "ViewBackward0",
    "UnsafeViewBackward0",
    "ReshapeAliasBackward0",
    "TransposeBackward0",
    "TBackward0",
    "PermuteBackward0",
    "CloneBackward0",
    "SqueezeBackward0",
    "SqueezeBackward1",
    "UnsqueezeBackward0",
    "ToCopyBackward0",
}
SQUASHING = {"SigmoidBackward0": "sigmoid", "TanhBackward0": "tanh"}


@dataclass(frozen=True)
class Made:
    """What made an autograd node: a layer, or a call of `F.dropout`."""

    role: str  # affine, norm, dropout or squash
    path: str
    module: nn.Module | None = None


@dataclass(eq=False)
class Flow:
    """One forward of one root."""

    root: Root
    made: dict[Any, Made] = field(default_factory=dict)
    pairs: list[tuple[dict[str, Any], list[Any]]] = field(default_factory=list)  # and the nodes in between
    biases: list[tuple[dict[str, Any], list[Any]]] = field(default_factory=list)
    dropouts: dict[str, dict[str, Any]] = field(default_factory=dict)
    squashing: list[dict[str, Any]] = field(default_factory=list)

    def enter(self, module: nn.Module, path: str, given: Tensor) -> None:
        if isinstance(module, AFFINE):
            self._into_affine(module, path, given.grad_fn)
        elif isinstance(module, NORMS) and (module.training or not module.track_running_stats):
            self._into_norm(path, given.grad_fn)

    def leave(self, module: nn.Module, path: str, output: Tensor) -> None:
        role = _role(module)
        node = output.grad_fn
        if role is None or node is None or (role == "dropout" and node in self.made):
            return  # a dropout that does nothing hands on what it got
        self.made[node] = Made(role, path, module)
        if role == "dropout":
            self.note_dropout(path, float(getattr(module, "p", 0.0)), module=True)

    def note_dropout(self, path: str, p: float, *, module: bool) -> None:
        row = {"path": path, "p": p, "module": module, "norm": None, "loss": False}
        file, line = (None, None) if module else user_line(2)
        self.dropouts.setdefault(path, {**row, "file": file, "line": line})

    def _into_affine(self, module: nn.Module, path: str, node: Any) -> None:
        through, nodes, source, last = self._back(node)
        if source is not None and source.role == "affine" and source.module is not None:
            self.pairs.append((_pair(source, module, path, through), nodes))
            return
        op = SQUASHING.get(type(last).__name__)
        if op is not None:
            names = [m.path for m in (self.made.get(last), self._layer_before(last)) if m is not None]
            self.squashing.append({"op": op, "modules": names, "into": path})

    def _layer_before(self, node: Any) -> Made | None:
        """The layer whose output a function was given, perhaps scaled or shifted."""
        for _ in range(NEAR):
            node = first_operand(node)
            made = self.made.get(node)
            if node is None or (made is not None and made.role == "affine"):
                return made
        return None

    def _into_norm(self, path: str, node: Any) -> None:
        _, nodes, source, _ = self._back(node, through_layers=False)
        if source is None:
            return
        if source.role == "dropout":
            self.dropouts[source.path]["norm"] = path
        elif source.role == "affine" and getattr(source.module, "bias", None) is not None:
            self.biases.append(({"layer": source.path, "norm": path}, nodes))

    def into_loss(self, prediction: Tensor) -> None:
        """Remember the dropout whose output is what the loss is given."""
        *_, source, _ = self._back(prediction.grad_fn, through_layers=False)
        if source is not None and source.role == "dropout":
            self.dropouts[source.path]["loss"] = True

    def _back(self, node: Any, through_layers: bool = True) -> tuple[list[str], list[Any], Made | None, Any]:
        """From a node back to what made its values: layers passed, nodes, the maker, the last node."""
        through: list[str] = []
        nodes: list[Any] = []
        while node is not None:
            nodes.append(node)
            made = self.made.get(node)
            if made is not None and not (through_layers and made.role in ("dropout", "norm")):
                return through, nodes, made if made.role != "squash" else None, node
            if made is not None:
                if isinstance(made.module, _InstanceNorm):
                    return through, nodes, None, node  # of every sample by itself: not affine
                through.append(made.path)
            elif type(node).__name__ not in MOVING:
                return through, nodes, None, node
            node = first_operand(node)
        return through, nodes, None, None

    def data(self, outputs: list[Any]) -> dict[str, Any]:
        """The `structure` fact, with what has no other consumer only."""
        users = consumers(outputs, {node for _, nodes in (*self.pairs, *self.biases) for node in nodes})

        def alone(nodes: list[Any]) -> bool:
            return all(users.get(node, 0) == 1 for node in nodes)

        return {
            "root": self.root.name,
            "pairs": _distinct(pair for pair, nodes in self.pairs if alone(nodes)),
            "biases": _distinct(row for row, nodes in self.biases if alone(nodes)),
            "dropouts": list(self.dropouts.values()),
            "squashing": _distinct(iter(self.squashing)),
        }

    def drop_graph(self) -> None:
        """Only the dropouts are still needed, to see what goes into the loss."""
        self.made = {node: made for node, made in self.made.items() if made.role == "dropout"}
        self.pairs, self.biases = [], []


class Structure:
    """Looks at the first measured forwards of every root; the fact is sent when a backward follows.

    `waiting` says whether there is anything to tell of what comes after a forward.
    """

    def __init__(self, sink: Sink, guard: Guard) -> None:
        self._sink = sink
        self.begin = guard.probe("structure", self._begin, self.forget)
        self.enter = guard.probe("structure", self._enter, self.forget)
        self.leave = guard.probe("structure", self._leave, self.forget)
        self.dropped = guard.probe("structure", self._dropped, self.forget)
        self.end = guard.probe("structure", self._end, self.forget)
        self.into_loss = guard.probe("structure", self._into_loss, self.forget)
        self.settle = guard.probe("structure", self._settle, self.forget)
        self._looks: dict[int, int] = {}
        self._sent: dict[str, dict[str, Any]] = {}
        self._waiting: list[tuple[Flow, dict[str, Any]]] = []
        self.flow: Flow | None = None

    @property
    def waiting(self) -> bool:
        return bool(self._waiting)

    def _begin(self, root: Root) -> None:
        """A measured forward of this root begins."""
        looked = self._looks.get(root.index, 0)
        self.flow = Flow(root) if looked < LOOKS else None
        self._looks[root.index] = looked + 1

    def _enter(self, module: nn.Module, path: str, args: tuple[Any, ...]) -> None:
        if self.flow is not None and args and isinstance(args[0], Tensor):
            self.flow.enter(module, path, args[0])

    def _leave(self, module: nn.Module, path: str, output: Any) -> None:
        if self.flow is not None and isinstance(output, Tensor):
            self.flow.leave(module, path, output)

    def _dropped(self, path: str, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        """`F.dropout` was called by the user's own forward."""
        given = dict(zip(("input", "p", "training"), args, strict=False)) | kwargs
        flow, p = self.flow, float(given.get("p", 0.5))
        if flow is None or not given.get("training", True) or p <= 0 or not isinstance(output, Tensor):
            return
        if output.grad_fn is not None:
            name = f"{path}.dropout" if path else "dropout"
            flow.made[output.grad_fn] = Made("dropout", name)
            flow.note_dropout(name, p, module=False)

    def _end(self, outputs: Iterator[Tensor]) -> None:
        """The forward returned."""
        flow, self.flow = self.flow, None
        if flow is not None:
            data = flow.data([t.grad_fn for t in outputs if t.grad_fn is not None])
            flow.drop_graph()
            self._waiting.append((flow, data))

    def _into_loss(self, prediction: Any) -> None:
        """A loss function was given this."""
        if isinstance(prediction, Tensor):
            for flow, _ in self._waiting:
                flow.into_loss(prediction)

    def _settle(self, step: int) -> None:
        """A backward begins: what was seen was training."""
        for flow, data in self._waiting:
            data["dropouts"] = list(flow.dropouts.values())
            if self._sent.get(flow.root.name) != data:
                self._sent[flow.root.name] = data
                self._sink.fact("structure", step, data)
        self._waiting = []

    def forget(self) -> None:
        """The step is over: hold no graph any longer."""
        self.flow = None
        self._waiting = []


def _role(module: nn.Module) -> str | None:
    if isinstance(module, AFFINE):
        return "affine"
    if isinstance(module, NORMS):
        return "norm"
    if isinstance(module, (nn.Sigmoid, nn.Tanh)):
        return "squash"
    return "dropout" if isinstance(module, _DropoutNd) and module.training and module.p > 0 else None


def _pair(source: Made, module: nn.Module, path: str, through: list[str]) -> dict[str, Any]:
    first = source.module
    return {
        "first": source.path,
        "then": path,
        "kinds": [type(first).__name__, type(module).__name__],
        "widths": [*_widths(first), _widths(module)[1]],
        "kernels": [list(getattr(m, "kernel_size", ())) for m in (first, module)],
        "grouped": any(getattr(m, "groups", 1) > 1 for m in (first, module)),
        "through": through,
    }


def _widths(module: Any) -> tuple[int, int]:
    if isinstance(module, nn.Linear):
        return module.in_features, module.out_features
    return module.in_channels, module.out_channels


def first_operand(node: Any) -> Any:
    return node.next_functions[0][0] if node is not None and node.next_functions else None


def consumers(outputs: list[Any], wanted: set[Any]) -> dict[Any, int]:
    """By how many nodes each of the wanted ones is used, in the graph below the outputs."""
    counts: dict[Any, int] = {node: 1 for node in outputs if node in wanted}
    seen, queue = set(outputs), list(outputs)
    while queue and len(seen) < WALKED:
        for child, _ in queue.pop().next_functions:
            if child in wanted:
                counts[child] = counts.get(child, 0) + 1
            if child is not None and child not in seen:
                seen.add(child)
                queue.append(child)
    return counts


def _distinct(rows: Iterator[dict[str, Any]]) -> list[dict[str, Any]]:
    """A layer that runs several times makes the same row each time."""
    found: list[dict[str, Any]] = []
    for row in rows:
        if row not in found:
            found.append(row)
    return found
