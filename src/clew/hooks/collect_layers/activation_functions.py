"""Calls of activation functions inside a training forward, such as `F.relu(self.fc1(x))`.

A torch function mode sees them all, and much else that a sampled step needs. It costs some ten microseconds
at every call of a torch function, because of cold caches. A step that needs only layer statistics does
without the mode where it can: the functions that `torch` itself has are replaced while the forward runs. That
works if no call bypasses it (`x.relu()` would): a sampled step uses both, and compares.
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
from clew.hooks.collect_layers.noise_and_mask_calls import NAMES as OTHER_CALLS
from clew.hooks.collect_layers.trained_models import Root
from clew.hooks.entry.patches import Patches, wrapped

Seen = Callable[[str, Any], None]

_topmost: Any = torch.overrides._get_current_function_mode
IN_TORCH = tuple(sorted(name for name in WATCHED if name in vars(torch)))  # called as `torch.name`


class ActivationMode(TorchFunctionMode):
    """Active only inside a training forward that is measured.

    Some torch layers take another (fused) path when no mode is active, but only where no gradient is needed:
    `Root.tracing_is_safe` and the caller keep the mode away from those.
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
        self._tell = seen  # called for the functions that are replaced
        self.mode: AbstractContextManager[Any] | None = None  # the mode of this forward, set or suspended
        self._aside: nn.Module | None = None  # while this layer runs, the mode is not set
        self._left: AbstractContextManager[Any] | None = None  # finished, but could not be removed yet
        self._thread = 0
        self._made: dict[Any, Any] = {}  # a function -> its replacement
        self._patches = Patches()
        self._by_mode: list[str] = []  # the calls of a sampled step, as seen in both ways
        self._by_name: list[str] = []

    def begin(self, mode: Callable[[Seen], ActivationMode], layers_only_follow: bool) -> None:
        """Begin a forward of a sampled step; forwards that measure only layers may follow, or never do."""
        self.recover()
        self._by_mode, self._by_name = [], []
        if layers_only_follow:
            self._replace_all(self._seen_by_name)
        self._enter(mode(self._seen_by_mode if layers_only_follow else self._seen))

    def begin_layers_only(self, root: Root) -> None:
        """Begin a forward that needs only layer statistics."""
        self.recover()
        if root.calls_in_torch:
            self._replace_all(self._seen)
        else:
            self._enter(ActivationMode(self._seen))

    def end(self, root: Root | None) -> None:
        """The forward of this root module has returned; None if something raised."""
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
        """Remove a finished mode, but not while torch has suspended it for a call of its own.

        An example is `backward()` after an interrupt.
        """
        if self._left is not None and _topmost() is self._left:
            self._left.__exit__(None, None, None)
            self._left = None

    def step_aside(self, root: Root, module: nn.Module) -> None:
        """A layer is about to run: suspend the mode if there is nothing for it to see in the layer."""
        mode = self.mode
        if mode is None or self._aside is not None or id(module) not in root.quiet:
            return
        if _topmost() is mode:  # otherwise the program has set a mode of its own since
            self._aside = module
            mode.__exit__(None, None, None)

    def come_back(self, module: nn.Module) -> None:
        """The layer has returned and its output has been handled."""
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

    # -- torch functions, replaced while a forward runs --

    def _replace_all(self, tell: Seen) -> None:
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
