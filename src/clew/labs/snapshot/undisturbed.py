"""Running the user's code a second time without the program noticing.

Random generators, buffers and whatever else is written to, attributes of modules, hooks, standard
output and warnings are afterwards as they were.
"""

from __future__ import annotations

import contextlib
import io
import warnings
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import nn

from clew.hooks.entry.user_line import USER, kind_of
from clew.labs.snapshot.held_step import Autocast, Rng
from clew.labs.snapshot.inplace_writes import Journal
from clew.labs.snapshot.users_step.purity import PUT_BACK

_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


@contextlib.contextmanager
def undisturbed(owners: Iterable[Any], rng: Rng, autocast: Autocast) -> Iterator[Journal]:
    """A place to compute in; `owners` are the objects whose attributes are kept."""
    journal, before = Journal(), Rng.take()
    attributes = [Attributes(owner) for owner in owners]
    with contextlib.ExitStack() as stack:
        stack.callback(torch.clear_autocast_cache)
        for saved in attributes:
            stack.callback(saved.restore)
        stack.callback(before.put)
        stack.callback(journal.undo)
        stack.enter_context(_no_warnings())
        stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        stack.enter_context(torch.enable_grad())
        stack.enter_context(_eagerly())
        if autocast.enabled:
            stack.enter_context(torch.autocast(autocast.device, autocast.dtype, cache_enabled=False))
        for saved in attributes:
            saved.silence_hooks()
        rng.put()
        yield journal


@contextlib.contextmanager
def _no_warnings() -> Iterator[None]:
    """Not `catch_warnings`: it makes Python forget which warnings it has shown."""
    shown = warnings.showwarning
    warnings.showwarning = lambda *_, **__: None
    try:
        yield
    finally:
        warnings.showwarning = shown


def _eagerly() -> contextlib.AbstractContextManager[Any]:
    """Compiled models run as they were written."""
    stance = getattr(torch.compiler, "set_stance", None)
    return contextlib.nullcontext() if stance is None else stance("force_eager")


class Attributes:
    """The attributes of one object, and what is in its lists and dictionaries."""

    def __init__(self, owner: Any) -> None:
        self._owner = owner
        self._values: dict[str, Any] = dict(vars(owner))
        self._contents = {
            name: (value, type(value)(value) if not isinstance(value, deque) else deque(value, value.maxlen))
            for name, value in self._values.items()
            if type(value) in PUT_BACK
        }

    def silence_hooks(self) -> None:
        """Hooks of the user's own may count, print or collect: they are not called a second time."""
        if not isinstance(self._owner, nn.Module):
            return
        for name in _HOOKS:
            hooks: dict[int, Any] = getattr(self._owner, name, None) or {}
            for key in [k for k, hook in hooks.items() if is_users(hook)]:
                del hooks[key]

    def restore(self) -> None:
        attributes = vars(self._owner)
        for name in [n for n in attributes if n not in self._values]:
            del attributes[name]
        for name, value in self._values.items():
            if attributes.get(name) is not value or name not in attributes:
                attributes[name] = value
        for value, content in self._contents.values():
            _refill(value, content)


def _refill(value: Any, content: Any) -> None:
    same = len(value) == len(content) and all(a is b for a, b in zip(value, content, strict=True))
    if same and isinstance(value, dict):
        same = all(a is b for a, b in zip(value.values(), content.values(), strict=True))
    if same:
        return
    value.clear()
    if isinstance(value, (dict, set)):
        value.update(content)
    else:
        value.extend(content)


def is_users(hook: Any) -> bool:
    """Whether a hook is of the program's own code."""
    code = getattr(hook, "__code__", None) or getattr(getattr(hook, "__func__", None), "__code__", None)
    return code is not None and kind_of(code.co_filename) == USER
