"""Hooks around every call of a module, which leave nothing in torch when they are removed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn
from torch.nn.modules import module as in_torch

# torch does not clear these itself, and torch.compile would keep warning about hooks.
_LEFT_BY_TORCH = ("_global_forward_hooks_with_kwargs", "_global_forward_hooks_always_called")


class GlobalModuleHooks:
    """A pair of global module hooks, installed until `remove`."""

    def __init__(
        self,
        before: Callable[[nn.Module, Any], None],
        after: Callable[..., None],
        *,
        with_kwargs: bool = False,
    ) -> None:
        """`after` gets the module, its arguments and its result, also when the module raises.

        `with_kwargs`: the keyword arguments come before the result, unless the module raised or torch is old.
        """
        passed = with_kwargs and hasattr(in_torch, _LEFT_BY_TORCH[0])
        options = {"with_kwargs": True} if passed else {}
        self._handles = [
            in_torch.register_module_forward_pre_hook(before),
            in_torch.register_module_forward_hook(after, always_call=True, **options),
        ]

    @property
    def ids(self) -> set[int]:
        """Their keys in torch's dictionaries of hooks."""
        return {handle.id for handle in self._handles}

    def remove(self) -> None:
        """Remove them; a second call does nothing."""
        for handle in self._handles:
            handle.remove()
            for name in _LEFT_BY_TORCH:
                getattr(in_torch, name, {}).pop(handle.id, None)
