"""Loss terms: the share of each loss call in the loss that `backward()` is called on.

A graph node is recognised by its number; keeping a reference to it would keep a whole graph alive. The weight
of a term is the gradient that arrives at its node in the user's own backward.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from torch import Tensor

from clew.hooks.collect_layers.step_rows import SiteRows
from clew.hooks.collect_loop.model_outputs import node_kind
from clew.hooks.entry.sink import Sink
from clew.measure.deferred_values import Late
from clew.measure.readable_tensors import has_values
from clew.records import signals
from clew.records.signal_types import names
from clew.records.site import Site

TERM_SIGNALS = names(
    signals.TERM_SHARE,
    signals.TERM_VALUE,
)
WALKED = 200  # most nodes between the loss and its terms
MOST = 16  # most loss calls per step

# Ops that add terms up, weight them or average them.
_ARITHMETIC = {
    "Add",
    "Sub",
    "Rsub",
    "Mul",
    "Div",
    "Neg",
    "Stack",
    "Cat",
    "Sum",
    "Mean",
    "Unsqueeze",
    "ToCopy",
}


class Terms:
    """Notes the results of loss calls, and finds them in the graph of the whole loss."""

    def __init__(self, sink: Sink, late: Late) -> None:
        self._pending = SiteRows(sink, late)
        self._calls: dict[int, tuple[Site, float]] = {}
        self._handles: list[Any] = []
        self._weights: dict[int, float] = {}
        self._total = 0.0

    def note(self, site: Site, result: Any) -> None:
        """A loss function returned this result."""
        if not isinstance(result, Tensor) or result.grad_fn is None or len(self._calls) >= MOST:
            return
        if result.is_cpu and result.numel() == 1 and has_values(result):
            self._calls[result.grad_fn._sequence_nr()] = (site, result.item())

    def before_backward(self, loss: Tensor) -> None:
        """Request the gradient at the known terms of a sum."""
        self._drop_hooks()
        if len(self._calls) == 0 or not loss.is_cpu or loss.numel() != 1 or loss.grad_fn is None:
            return
        terms = list(addends(loss.grad_fn, set(self._calls)))
        if len(terms) < 2:
            return
        self._total = loss.item()
        for node in terms:
            number = node._sequence_nr()
            if number in self._calls:
                self._handles.append(node.register_prehook(partial(self._arrived, number)))

    def _arrived(self, number: int, gradients: Any) -> None:
        gradient = gradients[0] if gradients else None
        if isinstance(gradient, Tensor) and gradient.numel() == 1:
            self._weights[number] = self._weights.get(number, 0.0) + gradient.detach().item()

    def after_backward(self) -> None:
        """The gradients have arrived: record the share of each call in the loss."""
        parts = {n: weight * self._calls[n][1] for n, weight in self._weights.items() if n in self._calls}
        if parts:
            rest = self._total - sum(parts.values())
            whole = sum(abs(part) for part in parts.values()) + abs(rest)
            for number, part in parts.items():
                site, value = self._calls[number]
                if whole > 0:
                    self._pending.put(TERM_SIGNALS, site, [abs(part) / whole, value])
        self._drop_hooks()

    def _drop_hooks(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles, self._weights = [], {}

    def commit(self, step: int) -> None:
        self._calls = {}
        self._drop_hooks()
        self._pending.commit(step)

    def discard(self) -> None:
        self._calls = {}
        self._pending.discard()


def addends(node: Any, known: set[int]) -> Iterator[Any]:
    """The nodes that a loss is composed of, as far down as arithmetic goes."""
    queue, seen = [node], 0
    while queue and seen < WALKED:
        node = queue.pop()
        seen += 1
        if node._sequence_nr() not in known and node_kind(node) in _ARITHMETIC:
            queue += [child for child, _ in node.next_functions if child is not None]
        else:
            yield node
