"""Shape printer for `--print-shapes`: input and output shapes of every layer, printed when they change."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from torch import nn
from torch.compiler import is_compiling

from clew.hooks.entry.module_hooks import GlobalModuleHooks
from clew.measure.nested_tensors import data_tensors
from clew.measure.readable_tensors import shape_of

Say = Callable[[str], None]
Signature = tuple[tuple[int, ...], ...]


class ShapePrinter:
    """A pair of global module hooks that read only shapes."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._stack: list[nn.Module] = []
        self._paths: dict[int, str] = {}
        self._seen: dict[str, set[tuple[Signature, Signature]]] = {}
        self._hooks: GlobalModuleHooks | None = None
        self._thread = threading.get_ident()

    def install(self, probe: Callable[[str, Callable[..., None]], Callable[..., None]]) -> None:
        """Install the hooks, each under the guard that `probe` returns; a second call does nothing."""
        if self._hooks is not None:
            return
        enter, leave = probe("print-shapes", self._enter), probe("print-shapes", self._leave)

        def before(module: nn.Module, args: Any) -> None:
            if not is_compiling() and threading.get_ident() == self._thread:
                enter(module)

        def after(module: nn.Module, args: Any, output: Any) -> None:
            if not is_compiling() and threading.get_ident() == self._thread:
                leave(module, args, output)

        self._hooks = GlobalModuleHooks(before, after)

    def remove(self) -> None:
        if self._hooks is not None:
            self._hooks.remove()
        self._hooks = None

    def _enter(self, module: nn.Module) -> None:
        if not self._stack and id(module) not in self._paths:
            self._paths.update({id(m): path for path, m in module.named_modules()})
        self._stack.append(module)

    def _leave(self, module: nn.Module, args: Any, output: Any) -> None:
        while self._stack and self._stack.pop() is not module:
            continue  # a module inside raised, and the program caught it
        if output is None or (module._modules and self._stack):
            return
        path = self._paths.get(id(module), "")
        name = f"{path}  {type(module).__name__}" if path else type(module).__name__
        shapes = (_shapes(args), _shapes(output))
        known = self._seen.setdefault(name, set())
        if shapes not in known:
            again = "  (new)" if known else ""
            known.add(shapes)
            self._say(f"shapes: {name}  {_text(shapes[0])} → {_text(shapes[1])}{again}")


def _shapes(value: Any) -> Signature:
    return tuple(shape_of(t) for t in data_tensors(value))


def _text(shapes: Signature) -> str:
    return ", ".join("×".join(map(str, shape)) or "scalar" for shape in shapes) or "–"
