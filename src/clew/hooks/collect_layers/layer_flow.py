"""Layer flow: which layer's output goes into which layer, read from any graph of a forward.

The order of modules does not show whether there was an activation function, a sum or a branch between two of
them; a graph does. It may be autograd's graph of a training forward, or that of a forward that was only
traced: an `AutogradEdges` knows how to walk its nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd
from torch.nn.modules.dropout import _DropoutNd
from torch.nn.modules.instancenorm import _InstanceNorm

from clew.records.facts.model_facts import DropoutRow, LayerPair, RemovedBias, SquashingRow, StructureFact
from clew.records.site import Line

NEAR = 8  # most nodes between a layer and the function that its output goes into
AFFINE = (nn.Linear, _ConvNd)
NORMS = (_BatchNorm, _InstanceNorm)


class AutogradEdges(Protocol):
    """How to walk a graph from results back to operands; nodes can be any hashable object."""

    def operand(self, node: Any) -> Any:
        """The node that computed the first operand of this one; None where the graph ends."""

    def moves(self, node: Any) -> bool:
        """Whether a node only moves values: a view, a copy, a cast."""

    def squashes(self, node: Any) -> str | None:
        """`sigmoid` or `tanh` if the node is one of them."""


@dataclass(frozen=True)
class LayerOutput:
    """What computed a node: a layer, or a call of `F.dropout`."""

    role: str  # affine, norm, dropout or squash
    path: str
    module: nn.Module | None = None


@dataclass(eq=False)
class LayerFlow:
    """One forward of one root module."""

    root: str
    way: AutogradEdges
    made: dict[Any, LayerOutput] = field(default_factory=dict)
    pairs: list[tuple[LayerPair, list[Any]]] = field(default_factory=list)  # with the nodes in between
    biases: list[tuple[RemovedBias, list[Any]]] = field(default_factory=list)
    dropouts: dict[str, DropoutRow] = field(default_factory=dict)
    squashing: list[SquashingRow] = field(default_factory=list)

    def enter(self, module: nn.Module, path: str, given: Any) -> None:
        """A module is about to run on the output of the node `given`."""
        if isinstance(module, AFFINE):
            self._into_affine(module, path, given)
        elif isinstance(module, NORMS) and (module.training or not module.track_running_stats):
            self._into_norm(path, given)

    def leave(self, module: nn.Module, path: str, node: Any) -> None:
        """The module has run, and this node computed its output."""
        role = role_of(module)
        if role is None or node is None or (role == "dropout" and node in self.made):
            return  # a dropout that does nothing passes its input on
        self.made[node] = LayerOutput(role, path, module)
        if role == "dropout":
            self._note_dropout(path, float(getattr(module, "p", 0.0)), True, (None, None))

    def dropped(self, node: Any, path: str, p: float, place: Line) -> None:
        """`F.dropout` was called in the forward of the module at `path`, on the line at `place`."""
        name = f"{path}.dropout" if path else "dropout"
        self.made[node] = LayerOutput("dropout", name)
        self._note_dropout(name, p, False, place)

    def _note_dropout(self, path: str, p: float, module: bool, place: Line) -> None:
        self.dropouts.setdefault(path, DropoutRow(path, p, module, file=place[0], line=place[1]))

    def _into_affine(self, module: nn.Module, path: str, node: Any) -> None:
        through, nodes, source, last = self._back(node)
        if source is not None and source.role == "affine" and source.module is not None:
            self.pairs.append((_pair(source, module, path, through), nodes))
            return
        op = self.way.squashes(last) if last is not None else None
        if op is not None:
            names = tuple(m.path for m in (self.made.get(last), self._layer_before(last)) if m is not None)
            self.squashing.append(SquashingRow(op, names, into=path))

    def _layer_before(self, node: Any) -> LayerOutput | None:
        """The layer whose output was passed to a function, perhaps scaled or shifted."""
        for _ in range(NEAR):
            node = self.way.operand(node) if node is not None else None
            made = self.made.get(node)
            if node is None or (made is not None and made.role == "affine"):
                return made
        return None

    def _into_norm(self, path: str, node: Any) -> None:
        _, nodes, source, _ = self._back(node, through_layers=False)
        if source is None:
            return
        if source.role == "dropout":
            self.dropouts[source.path] = replace(self.dropouts[source.path], norm=path)
        elif source.role == "affine" and getattr(source.module, "bias", None) is not None:
            self.biases.append((RemovedBias(source.path, path), nodes))

    def into_loss(self, node: Any) -> None:
        """Remember the dropout whose output goes into the loss."""
        *_, source, _ = self._back(node, through_layers=False)
        if source is not None and source.role == "dropout":
            self.dropouts[source.path] = replace(self.dropouts[source.path], loss=True)

    def _back(
        self, node: Any, through_layers: bool = True
    ) -> tuple[list[str], list[Any], LayerOutput | None, Any]:
        """Walk back to what computed a node's values: layers passed, nodes, their source, the last node."""
        through: list[str] = []
        nodes: list[Any] = []
        while node is not None:
            nodes.append(node)
            made = self.made.get(node)
            if made is not None and not (through_layers and made.role in ("dropout", "norm")):
                return through, nodes, made if made.role != "squash" else None, node
            if made is not None:
                if isinstance(made.module, _InstanceNorm):
                    return through, nodes, None, node  # computed for each sample by itself: not affine
                through.append(made.path)
            elif not self.way.moves(node):
                return through, nodes, None, node
            node = self.way.operand(node)
        return through, nodes, None, None

    @property
    def between(self) -> set[Any]:
        """The nodes for which it matters how many others use them."""
        return {node for _, nodes in (*self.pairs, *self.biases) for node in nodes}

    def fact(self, users: Mapping[Any, int]) -> StructureFact:
        """The `structure` fact, including only pairs whose nodes have no other user."""

        def alone(nodes: list[Any]) -> bool:
            return all(users.get(node, 0) == 1 for node in nodes)

        return StructureFact(
            root=self.root,
            pairs=tuple(_distinct(pair for pair, nodes in self.pairs if alone(nodes))),
            biases=tuple(_distinct(row for row, nodes in self.biases if alone(nodes))),
            dropouts=tuple(self.dropouts.values()),
            squashing=tuple(_distinct(iter(self.squashing))),
        )

    def drop_graph(self) -> None:
        """Drop the graph: only the dropouts are still needed, to see what goes into the loss."""
        self.made = {node: made for node, made in self.made.items() if made.role == "dropout"}
        self.pairs, self.biases = [], []


def role_of(module: nn.Module) -> str | None:
    if isinstance(module, AFFINE):
        return "affine"
    if isinstance(module, NORMS):
        return "norm"
    if isinstance(module, (nn.Sigmoid, nn.Tanh)):
        return "squash"
    return "dropout" if isinstance(module, _DropoutNd) and module.training and module.p > 0 else None


def _pair(source: LayerOutput, module: nn.Module, path: str, through: list[str]) -> LayerPair:
    first = source.module
    return LayerPair(
        source.path,
        path,
        kinds=(type(first).__name__, type(module).__name__),
        widths=(*_widths(first), _widths(module)[1]),
        kernels=tuple(tuple(getattr(m, "kernel_size", ())) for m in (first, module)),
        grouped=any(getattr(m, "groups", 1) > 1 for m in (first, module)),
        through=tuple(through),
    )


def _widths(module: Any) -> tuple[int, int]:
    if isinstance(module, nn.Linear):
        return module.in_features, module.out_features
    return module.in_channels, module.out_channels


Row = TypeVar("Row")


def _distinct(rows: Iterator[Row]) -> list[Row]:
    """Remove duplicates: a layer that runs several times makes the same row each time."""
    found: list[Row] = []
    for row in rows:
        if row not in found:
            found.append(row)
    return found
