"""Following known models between samples, without a hook on every layer.

Global module hooks make torch take a slower path for every module call: microseconds each, and a
large model has thousands. They are needed to find models and on sampled steps only. In between,
a known root is followed through a wrapper around the `forward` of its class.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import get_ident
from time import perf_counter
from types import FunctionType
from typing import Any

from torch import nn
from torch.compiler import is_compiling

from clew.hooks.entry.patches import Patches
from clew.hooks.steps.light_rows import FORWARD
from clew.hooks.steps.trained_models import Root
from clew.hooks.steps.watcher import Watcher

SETTLED_AFTER = 3  # steps in which the models and optimizers of a usual program have all appeared

# Of torch's own classes only containers: wrapping `Linear.forward` would cost every layer again.
_CONTAINERS = {"Sequential", "DistributedDataParallel", "DataParallel"}


class Follower:
    """What the wrappers ask. It goes inert when pickled: someone may send a class to another process."""

    def __init__(self, watcher: Watcher | None = None) -> None:
        self._watcher = watcher
        self.roots: dict[int, Root] = {}
        self.active = False
        self.enter: Callable[..., None] = _nothing
        self.leave: Callable[..., None] = _nothing
        self.usually: Callable[..., bool | None] = _nothing  # so nothing of ours is done where it is inert
        self.plainly: Callable[..., int | None] = _nothing
        self.left: Callable[[], None] = _nothing
        self.failed: Callable[..., None] = _nothing
        self.plain = watcher.plain if watcher is not None else None

    def wants(self) -> bool:
        """Whether this call of a root's `forward` is one that nobody else reports."""
        watcher = self._watcher
        return (
            self.active
            and watcher is not None
            and not watcher.forwards.depth
            and not watcher.in_backward
            and get_ident() == watcher.thread
        )

    def __reduce__(self) -> tuple[type[Follower], tuple[()]]:
        return Follower, ()


def _nothing(*_: Any) -> None:
    return None


class Following:
    """Decides whether the global hooks can rest, and wraps the classes of the roots."""

    def __init__(self, watcher: Watcher, patches: Patches) -> None:
        self._watcher = watcher
        self._patches = patches
        self._known: tuple[int, int] = (-1, -1)
        self._settled = False
        self._classes: set[type] = set()
        self.follower = Follower(watcher)

    def hooks_can_rest(self) -> bool:
        """Between samples, once every model is followed and every optimizer has stepped."""
        watcher = self._watcher
        if watcher.sampling or watcher.models.compile_used or watcher.clock.step < SETTLED_AFTER:
            return False  # dynamo compiles anew when global hooks come and go
        if watcher.cycle.lead is None:
            return False  # the program updates by hand: its steps end with backward()
        known = (len(watcher.models.roots), watcher.optimizers.without_a_step())
        if known != self._known:
            self._known = known
            self._settled = known[0] > 0 and known[1] == 0 and self._follow_all()
        return self._settled

    def _follow_all(self) -> bool:
        return all(self._follow(root) for root in self._watcher.models.roots)

    def _follow(self, root: Root) -> bool:
        module = root.module()
        if module is None:
            return True
        owner = next((c for c in type(module).__mro__ if "forward" in vars(c)), None)
        if owner is None or not isinstance(vars(owner)["forward"], FunctionType):
            return False
        if owner.__module__.startswith("torch.") and owner.__name__ not in _CONTAINERS:
            return False
        self.follower.roots[id(module)] = root
        if owner not in self._classes:
            self._classes.add(owner)
            self._patches.wrap(owner, "forward", reporting_to(self.follower))
        return True


def reporting_to(follower: Follower) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A wrapper of `forward` that holds nothing but the original and the follower."""

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def forward(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
            if is_compiling():
                return original(self, *args, **kwargs)
            plain = follower.plain
            if plain is None:
                return original(self, *args, **kwargs)
            usual: bool | None = False
            try:
                usual = follower.usually(self, args, kwargs)
                if usual:
                    output = original(self, *args, **kwargs)
                    if not plain.usual.leave():
                        follower.left()
                    return output
            except BaseException as error:
                plain.dropped()
                if usual or not isinstance(error, Exception):
                    raise
                follower.failed(error)  # nothing of ours may reach the user
            if usual is None:
                return original(self, *args, **kwargs)
            root, batch = follower.roots.get(id(self)), None
            if root is None or plain.inside:
                return original(self, *args, **kwargs)
            if plain.resting:
                try:
                    batch = follower.plainly(root, self, args, kwargs)
                except Exception as error:  # noqa: BLE001 - nothing of ours may reach the user
                    follower.failed(error)
                if batch is not None:
                    plain.inside, began = True, perf_counter()
                    try:
                        output = original(self, *args, **kwargs)
                    finally:
                        plain.inside = False
                    plain.note((FORWARD, root.index, perf_counter() - began, batch))
                    return output
            if not follower.wants():
                return original(self, *args, **kwargs)
            follower.enter(self, args)
            try:
                output = original(self, *args, **kwargs)
            except BaseException:
                follower.leave(self, args, {}, None)
                raise
            follower.leave(self, args, kwargs, output)
            return output

        return forward

    return wrap
