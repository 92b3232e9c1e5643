"""Calls the models of a replay with the arguments and random state of the original calls.

A script may draw its batch in the same statement that calls the model. Run again, that would be
another batch, so the model's original arguments are kept.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_flatten, tree_unflatten

from clew.hooks.collect_layers.trained_models import unwrap
from clew.hooks.steps.replay_inputs import DERIVED, has_graph, same_state
from clew.labs.snapshot.held_step import HeldStep
from clew.measure.rng import Rng


class SameCalls:
    """Hooks on the models of a step; `all_seen` is set once each was called as often as originally."""

    def __init__(self, held: HeldStep) -> None:
        self._held = held
        self._waiting = list(held.calls)
        self._since: Rng | None = None  # state of the generators when the first model was called

    def install(self) -> None:
        """The snapshot that keeps the modules' attributes removes the hooks."""
        for module in {id(c.module): unwrap(c.module) for c in self._held.calls}.values():
            module.register_forward_pre_hook(self._called, with_kwargs=True)

    @property
    def all_seen(self) -> bool:
        return not self._waiting

    def drawn_anew(self) -> list[str]:
        """The generators that were drawn from although their state in the step is not known."""
        if self._since is None:
            return []
        now = Rng.take()
        pairs = (
            (name, getattr(self._since, name), getattr(now, name)) for name in ("torch", "numpy", "python")
        )
        drawn = [name for name, old, new in pairs if old is not None and not same_state(old, new)]
        return [name for name in drawn if getattr(self._held.rng, name) is None]

    def _called(self, module: nn.Module, args: Any, kwargs: Any) -> tuple[Any, Any] | None:
        call = next((c for c in self._waiting if unwrap(c.module) is module), None)
        if call is None:
            return None
        self._waiting.remove(call)
        if self._since is None:
            self._held.rng.put()
            self._since = Rng.take()
        same: tuple[Any, Any] = merged((call.args, call.kwargs), (args, kwargs))
        return same


def merged(held: Any, given: Any) -> Any:
    """The kept arguments, except for tensors that this run computed itself: they carry its graph or NaN."""
    old, shape = tree_flatten(held)
    new, other = tree_flatten(given)
    if shape != other:
        return given
    pairs = zip(old, new, strict=True)
    return tree_unflatten(
        [n if o is DERIVED or has_graph((o,)) or _is_the_same(o, n) else o for o, n in pairs], shape
    )


def _is_the_same(old: Any, new: Any) -> bool:
    """Whether this run has computed exactly the same values."""
    if not isinstance(old, Tensor) or not isinstance(new, Tensor) or old is new:
        return False
    alike = old.shape == new.shape and old.dtype == new.dtype and old.layout == new.layout == torch.strided
    if not alike or old.requires_grad != new.requires_grad:
        return False
    with _disable_current_modes(), torch.no_grad():
        return bool(((old == new) | ((old != old) & (new != new))).all())
