"""Layer structure of a model in training, read from the autograd graph.

Reads only the first measured forwards, and no saved value of a node. What the graph shows is worked out in
`clew.hooks.collect_layers.layer_flow`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from torch import Tensor, nn

from clew.hooks.collect_layers.layer_flow import LayerFlow
from clew.hooks.collect_layers.trained_models import Root
from clew.hooks.entry.guard import Guard
from clew.hooks.entry.sink import Sink
from clew.hooks.entry.user_line import user_line
from clew.records.facts.model_facts import StructureFact

# Training forwards of each root module that are read; a structure that depends on the data is not judged.
FORWARDS = 2
WALKED = 20_000  # most autograd nodes counted

# Nodes that only move values. In training, batch normalisation is one more affine map.
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


class AutogradWay:
    """Walks autograd: nodes are the `grad_fn`s of tensors."""

    def operand(self, node: Any) -> Any:
        return first_operand(node)

    def moves(self, node: Any) -> bool:
        return type(node).__name__ in MOVING

    def squashes(self, node: Any) -> str | None:
        return SQUASHING.get(type(node).__name__)


class Structure:
    """Reads the first measured forwards of every root module; the fact is written when a backward follows.

    `waiting` says whether it needs the events after a forward.
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
        self._forwards: dict[int, int] = {}
        self._sent: dict[str, StructureFact] = {}
        self._waiting: list[tuple[LayerFlow, StructureFact]] = []
        self.flow: LayerFlow | None = None

    @property
    def waiting(self) -> bool:
        return bool(self._waiting)

    def _begin(self, root: Root) -> None:
        """A measured forward of this root module begins."""
        done = self._forwards.get(root.index, 0)
        self.flow = LayerFlow(root.name, AutogradWay()) if done < FORWARDS else None
        self._forwards[root.index] = done + 1

    def _enter(self, module: nn.Module, path: str, args: tuple[Any, ...]) -> None:
        if self.flow is not None and args and isinstance(args[0], Tensor):
            self.flow.enter(module, path, args[0].grad_fn)

    def _leave(self, module: nn.Module, path: str, output: Any) -> None:
        if self.flow is not None and isinstance(output, Tensor):
            self.flow.leave(module, path, output.grad_fn)

    def _dropped(self, path: str, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        """The user's own forward called `F.dropout`."""
        given = dict(zip(("input", "p", "training"), args, strict=False)) | kwargs
        flow, p = self.flow, float(given.get("p", 0.5))
        if flow is None or not given.get("training", True) or p <= 0 or not isinstance(output, Tensor):
            return
        if output.grad_fn is not None:
            flow.dropped(output.grad_fn, path, p, user_line())

    def _end(self, outputs: Iterator[Tensor]) -> None:
        """The forward has returned."""
        flow, self.flow = self.flow, None
        if flow is not None:
            ends = [t.grad_fn for t in outputs if t.grad_fn is not None]
            seen = flow.fact(consumers(ends, flow.between))
            flow.drop_graph()
            self._waiting.append((flow, seen))

    def _into_loss(self, prediction: Any) -> None:
        """A loss function got this prediction."""
        if isinstance(prediction, Tensor):
            for flow, _ in self._waiting:
                flow.into_loss(prediction.grad_fn)

    def _settle(self, step: int) -> None:
        """A backward begins: the forward was training."""
        for flow, seen in self._waiting:
            fact = replace(seen, dropouts=tuple(flow.dropouts.values()))
            if self._sent.get(flow.root) != fact:
                self._sent[flow.root] = fact
                fact.write(self._sink, step)
        self._waiting = []

    def forget(self) -> None:
        """The step is over: keep no reference to a graph."""
        self.flow = None
        self._waiting = []


def first_operand(node: Any) -> Any:
    return node.next_functions[0][0] if node is not None and node.next_functions else None


def consumers(outputs: list[Any], wanted: set[Any]) -> dict[Any, int]:
    """How many nodes use each of the wanted ones, in the graph below the outputs."""
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
