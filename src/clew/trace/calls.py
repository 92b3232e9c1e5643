"""The models of a replay are called as they were: with the held arguments and random numbers.

A script may draw its batch in the very statement that calls the model. Run again, that would be
another batch; what the model was really given is held.
"""

from __future__ import annotations

from typing import Any

from torch import nn
from torch.utils._pytree import tree_flatten, tree_unflatten

from clew.attach.holding import DERIVED, has_graph
from clew.attach.models import unwrap
from clew.trace.held import HeldStep


class SameCalls:
    """Hooks on the models of a step; `all_seen` once each was called as often as it had been."""

    def __init__(self, held: HeldStep) -> None:
        self._held = held
        self._waiting = list(held.calls)
        self._first = True

    def install(self) -> None:
        """Whoever keeps the modules' attributes takes the hooks off again."""
        for module in {id(c.module): unwrap(c.module) for c in self._held.calls}.values():
            module.register_forward_pre_hook(self._called, with_kwargs=True)

    @property
    def all_seen(self) -> bool:
        return not self._waiting

    def _called(self, module: nn.Module, args: Any, kwargs: Any) -> tuple[Any, Any] | None:
        call = next((c for c in self._waiting if unwrap(c.module) is module), None)
        if call is None:
            return None
        self._waiting.remove(call)
        if self._first:
            self._first = False
            self._held.rng.put()
        same: tuple[Any, Any] = merged((call.args, call.kwargs), (args, kwargs))
        return same


def merged(held: Any, given: Any) -> Any:
    """What was held, but for tensors that this run has computed itself: they carry its graph."""
    old, shape = tree_flatten(held)
    new, other = tree_flatten(given)
    if shape != other:
        return given
    pairs = zip(old, new, strict=True)
    return tree_unflatten([n if o is DERIVED or has_graph((o,)) else o for o, n in pairs], shape)
