"""Writes the running module into torch's trace while a window is open.

A wrapper around `nn.Module.__call__` puts module calls in named ranges: a global hook
would send every call through torch's slower path and make small modules look slower than they are.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.autograd.profiler import record_function
from torch.compiler import is_compiling

from clew.hooks.collect_layers.trained_models import ModelBook, Root, strip_wrappers, unwrap
from clew.hooks.entry.patches import Patches
from clew.hooks.entry.user_line import name_in_caller
from clew.hooks.steps.light_recorder import LightRecorder
from clew.labs.profiler.memory.growth_watch import GrowthWatch
from clew.labs.profiler.torch_trace.torch_events import BACKWARD, MODULE, OWN, named
from clew.measure.gradient_norm import GradientNorm

_never_left: list[Any] = []  # handles that must not be freed: freeing one exits its range

MOST_CALLS = 50_000  # module calls in one window: a whole evaluation would fill the memory


@dataclass(frozen=True)
class Scope:
    """What a range represents."""

    root: str
    path: str  # "" is the root itself
    kind: str = ""  # its class
    parameters: int = 0  # bytes, its own ones only
    trains: bool = True  # a model, not a loss or a forward without gradients
    evaluates: bool = False
    file: str | None = None
    line: int | None = None

    @property
    def full_name(self) -> str:
        return f"{self.root}.{self.path}" if self.path else self.root


class Scopes:
    """Adds the ranges and removes them again; `table` maps them to what they represent."""

    def __init__(
        self, models: ModelBook, find: Callable[[nn.Module], Root | None], on_overflow: Callable[[], None]
    ) -> None:
        self.table: dict[str, Scope] = {}  # by the range's name
        self._models = models
        self._find = find
        self._on_overflow = on_overflow
        self._patches = Patches()
        self._names: dict[int, tuple[weakref.ref[nn.Module], str]] = {}
        self._depth = threading.local()
        self._calls = 0
        self._entered: list[Any] = []  # the program's own ranges that are still open

    def install(self) -> None:
        """Add ranges for modules, `backward()` and Clew's own work."""
        if not self._models.compile_used:  # a wrapped call would make dynamo recompile
            self._patches.wrap(nn.Module, "__call__", self._around_call)
            self._patches.wrap(record_function, "__enter__", self._entering)
            self._patches.wrap(record_function, "__exit__", self._leaving)
        self._patches.wrap(torch.autograd, "_engine_run_backward", _within(BACKWARD))
        self._patches.wrap(GradientNorm, "__call__", _within(OWN))
        self._patches.wrap(LightRecorder, "write", _within(OWN))
        GrowthWatch.own_work = partial(named, OWN)

    def remove(self) -> None:
        """Restore torch. To be called before the profiler is stopped.

        A range that is exited after its profiler is gone, under another one, would write into freed memory:
        so as far as torch knows, ranges that are open now are never exited.
        """
        self._patches.remove()
        GrowthWatch.own_work = nullcontext
        for entered in self._entered:
            entered.run_callbacks_on_exit = False
            _never_left.append(getattr(entered, "record", None))
        self._entered = []

    def _entering(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(range_: Any) -> Any:
            result = original(range_)
            self._entered.append(range_)
            return result

        return wrapper

    def _leaving(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(range_: Any, *error: Any) -> Any:
            if range_ in self._entered:
                self._entered.remove(range_)
            return original(range_, *error)

        return wrapper

    def _around_call(self, original: Callable[..., Any]) -> Callable[..., Any]:
        depth, name_of = self._depth, self._name_of

        def call(self: nn.Module, /, *args: Any, **kwargs: Any) -> Any:
            if is_compiling():
                return original(self, *args, **kwargs)
            level = getattr(depth, "level", 0)
            name = name_of(self, level)
            if name is None:
                return original(self, *args, **kwargs)
            depth.level = level + 1
            try:
                with named(name):
                    return original(self, *args, **kwargs)
            finally:
                depth.level = level

        return call

    def _name_of(self, module: nn.Module, level: int) -> str | None:
        """The range of this call; None for a module without a name. Nothing here may raise."""
        try:
            self._calls += 1
            if self._calls == MOST_CALLS:
                self._on_overflow()
            if level == 0 and not torch.is_grad_enabled():
                return self._evaluation(module)
            known = self._names.get(id(module))
            if known is not None and known[0]() is module:
                return known[1]
            return self._outermost(module) if level == 0 else None
        except Exception:  # noqa: BLE001 - nothing here may stop the user's forward
            return None

    def _evaluation(self, module: nn.Module) -> str | None:
        """A forward without gradients: an evaluation, or a network that is only queried."""
        root = self._find(module)
        if root is None:
            return None
        if id(module) not in self._names:
            self._index(root)
        path = self._models.path_of(root, module) or ""
        scope = Scope(root.name, path, type(module).__name__, trains=False, evaluates=True)
        return self._register(f"{MODULE}{scope.full_name} without gradients", scope)

    def _outermost(self, module: nn.Module) -> str | None:
        """A call from the program's own code: a whole model, or a loss."""
        root = self._find(module)
        if root is None and next(module.parameters(), None) is not None:
            return None  # just found: named from its next call on
        if root is None:
            name = name_in_caller(module) or type(module).__name__
            scope = Scope(name, "", type(module).__name__, trains=False)
            return self._name(module, scope)
        self._index(root)
        known = self._names.get(id(module))
        return known[1] if known is not None and known[0]() is module else None

    def _index(self, root: Root) -> None:
        outer = root.module()
        if outer is None:
            return
        inner = unwrap(outer)
        for path, module in inner.named_modules():
            file, line = self._models.where_made(module)
            own = sum(p.numel() * p.element_size() for p in module._parameters.values() if p is not None)
            path = strip_wrappers(path)
            self._name(module, Scope(root.name, path, type(module).__name__, own, file=file, line=line))

    def _name(self, module: nn.Module, scope: Scope) -> str:
        name = self._register(f"{MODULE}{scope.full_name} ({scope.kind})", scope)
        self._names[id(module)] = (weakref.ref(module), name)
        return name

    def _register(self, name: str, scope: Scope) -> str:
        self.table.setdefault(name, scope)
        return name


def _within(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if is_compiling():
                return original(*args, **kwargs)
            with named(name):
                return original(*args, **kwargs)

        return wrapper

    return wrap
