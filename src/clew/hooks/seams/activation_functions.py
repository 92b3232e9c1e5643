"""Sees the activation functions that are called inside a training forward: `F.relu(self.fc1(x))`.

A mode of torch's sees them all, and much else that is wanted of a sampled step. It
costs some ten microseconds at every call of torch's functions, from cold caches. A step of which
nothing but statistics is wanted does without it where it can: those functions that `torch` itself
has are replaced while the forward runs. That serves where nothing escapes it (`x.relu()` would):
a sampled step has both, and compares.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from threading import get_ident
from typing import Any

import torch
from torch import nn
from torch.compiler import is_compiling
from torch.overrides import TorchFunctionMode

from clew.hooks.collect_layers.activations import WATCHED
from clew.hooks.collect_layers.loss_graph import CUTTING, DATA_GETTER
from clew.hooks.entry.patches import Patches, wrapped
from clew.hooks.seams.output_functions import NAMES as OTHER_CALLS
from clew.hooks.steps.trained_models import Root

Seen = Callable[[str, Any], None]

_topmost: Any = torch.overrides._get_current_function_mode
IN_TORCH = tuple(sorted(name for name in WATCHED if name in vars(torch)))  # as functions of its own


class ActivationMode(TorchFunctionMode):
    """Active only inside a training forward that is measured.

    Some torch layers take another (fused) path when no mode is active, but only where no gradient is
    needed: `Root.tracing_is_safe` and the caller keep it away from those.
    """

    def __init__(
        self,
        seen: Seen,
        dropped: Callable[[Any, Any, Any], None] | None = None,
        others: Callable[[str, Any, Any, Any], None] | None = None,
        cut: Callable[[str, Any], None] | None = None,
    ) -> None:
        super().__init__()
        self._seen = seen
        self._dropped = dropped
        self._others = others
        self._cut = cut

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", "")
        if name in WATCHED:
            self._seen(name, result)
        elif name == "dropout" and self._dropped is not None:
            self._dropped(args, kwargs or {}, result)
        elif self._others is not None and name in OTHER_CALLS:
            self._others(name, args, kwargs or {}, result)
        elif self._cut is not None and (name in CUTTING or func == DATA_GETTER):
            self._cut(name, args)
        return result


class ActivationCalls:
    """Sets the mode, or replaces the functions, for one forward at a time."""

    def __init__(self, seen: Seen) -> None:
        self._seen = seen
        self._tell = seen  # who is told of calls of the functions that are replaced
        self.mode: AbstractContextManager[Any] | None = None  # that this forward has, set or aside
        self._aside: nn.Module | None = None  # while this layer runs, the mode is not set
        self._left: AbstractContextManager[Any] | None = None  # is over, but could not be taken down yet
        self._thread = 0
        self._made: dict[Any, Any] = {}  # a function -> what it is replaced with
        self._patches = Patches()
        self._by_mode: list[str] = []  # the calls of a sampled step, as each of the two saw them
        self._by_name: list[str] = []

    def begin(self, mode: Callable[[Seen], ActivationMode], layers_only_follow: bool) -> None:
        """A forward of a sampled step; some of which only layers are measured may follow, or never do."""
        self.recover()
        self._by_mode, self._by_name = [], []
        if layers_only_follow:
            self._replace(self._seen_by_name)
        self._enter(mode(self._seen_by_mode if layers_only_follow else self._seen))

    def begin_layers_only(self, root: Root) -> None:
        """A forward of which nothing but the statistics of layers is wanted."""
        self.recover()
        if root.calls_in_torch:
            self._replace(self._seen)
        else:
            self._enter(ActivationMode(self._seen))

    def end(self, root: Root | None) -> None:
        """The forward of this root returned; None: something raised."""
        if root is not None and self._by_mode:
            root.calls_in_torch = self._by_mode == self._by_name
        self._by_mode, self._by_name = [], []
        self._patches.remove()
        mode, aside = self.mode, self._aside
        self.mode = self._aside = None
        if mode is not None and aside is None:
            self._left = mode
            self.recover()

    def recover(self) -> None:
        """Take down what is over; not while torch has set it aside for a call of its own, such as
        `backward()` after an interrupt."""
        if self._left is not None and _topmost() is self._left:
            self._left.__exit__(None, None, None)
            self._left = None

    def step_aside(self, root: Root, module: nn.Module) -> None:
        """A layer is about to run: if there is nothing for the mode to see in it, it is not set."""
        mode = self.mode
        if mode is None or self._aside is not None or id(module) not in root.quiet:
            return
        if _topmost() is mode:  # else the program has set one of its own since
            self._aside = module
            mode.__exit__(None, None, None)

    def come_back(self, module: nn.Module) -> None:
        """The layer returned, and what was asked of its output is answered."""
        if self._aside is module and self.mode is not None:
            self._aside = None
            self.mode.__enter__()

    def _enter(self, mode: AbstractContextManager[Any]) -> None:
        mode.__enter__()
        self.mode = mode

    def _seen_by_mode(self, name: str, output: Any) -> None:
        self._by_mode.append(name.rstrip("_"))
        self._seen(name, output)

    def _seen_by_name(self, name: str, _: Any) -> None:
        self._by_name.append(name.rstrip("_"))

    # -- functions of torch's, replaced while a forward runs --

    def _replace(self, tell: Seen) -> None:
        self._patches.remove()  # an interrupt may have left them
        self._tell, self._thread = tell, get_ident()
        for name in IN_TORCH:
            original = vars(torch)[name]
            if original not in self._made:
                self._made[original] = wrapped(original, partial(self._telling, name))
            self._patches.put(torch, name, original, self._made[original])

    def _telling(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def function(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            if not is_compiling() and get_ident() == self._thread:
                self._tell(name, result)
            return result

        return function
