"""Computes the gradients of a loss without storing them in `.grad`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

_REENTRANT = "CheckpointFunction"  # runs a backward of its own inside, which `autograd.grad` does not reach
_HOOKS = ("_backward_hooks", "_post_accumulate_grad_hooks")


def each_gradient(
    loss: Tensor, parameters: Sequence[Tensor], others: Iterable[Tensor] = ()
) -> list[Tensor | None]:
    """The gradient of each parameter. `others` are leaves that a `backward()` would give gradients too."""
    nodes = list(_nodes(loss))
    if not any(_REENTRANT in str(node.name()) for node in nodes):
        return list(torch.autograd.grad(loss, parameters, allow_unused=True))
    leaves = [node.variable for node in nodes if hasattr(node, "variable")]
    with _without_gradients([*parameters, *others, *leaves]):
        torch.autograd.backward(loss)
        return [p.grad for p in parameters]


def _nodes(loss: Tensor) -> Iterator[Any]:
    waiting, seen = [loss.grad_fn], set()
    while waiting:
        node = waiting.pop()
        if node is not None and node not in seen:
            seen.add(node)
            waiting += [above for above, _ in node.next_functions]
            yield node


@contextmanager
def _without_gradients(leaves: Iterable[Tensor]) -> Iterator[None]:
    """The leaves have no gradient and no hooks for a while; a hook of the user's may even update them."""
    known = {id(t): t for t in leaves if t.is_leaf and t.requires_grad}
    before = [(leaf, leaf.grad) for leaf in known.values()]
    found = [getattr(leaf, name, None) for leaf in known.values() for name in _HOOKS]
    hooks = [(table, dict(table)) for table in found if table]
    try:
        for leaf, _ in before:
            leaf.grad = None
        for table, _ in hooks:
            table.clear()
        yield
    finally:
        for leaf, gradient in before:
            leaf.grad = gradient
        for table, content in hooks:
            table.update(content)
