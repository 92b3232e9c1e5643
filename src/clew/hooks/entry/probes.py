"""How seams are made: wrapped functions and hooks that call the watcher, in order and under guard."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch
from torch.compiler import is_compiling

from clew.hooks.entry.guard import Guard
from clew.hooks.entry.patches import Patches
from clew.hooks.steps.light_rows import OTHER
from clew.hooks.steps.native_steps import NUMBERS
from clew.hooks.steps.watcher import Watcher

PLAIN = "plain"
CENTRAL = ("forward", "backward", "step")  # without one of these the others make no sense

Probe = Callable[..., None]


class Probes:
    """What every seam needs. Wrappers let a compiler through first: dynamo traces `is_compiling()`
    to a constant, and what follows it disappears."""

    def __init__(self, watcher: Watcher, guard: Guard) -> None:
        self.watcher = watcher
        self.guard = guard
        guard.grad_enabled, guard.set_grad_enabled = torch.is_grad_enabled, torch._C._set_grad_enabled
        self.patches = Patches()
        self.handles: list[Any] = []

    def remove(self) -> None:
        """Take everything off again."""
        for handle in self.handles:
            handle.remove()
        self.handles.clear()
        self.patches.remove()

    def probe(self, name: str, function: Callable[..., None]) -> Probe:
        """A guarded method of the watcher; what was only noted before is worked out first."""
        plain = self.watcher.plain

        def in_order(*args: Any, **kwargs: Any) -> None:
            if plain.waits:  # what was only noted came before this
                plain.write()
            function(*args, **kwargs)

        return self.guard.probe(name, in_order, self.watcher.halt if name in CENTRAL else None)

    def plain(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """What is done on plain steps; the seam catches what it raises and tells `plain_failed`."""
        return self.guard.bare(PLAIN, function)

    def plain_inside(self, function: Callable[..., None]) -> Callable[..., None]:
        """The same for a seam that catches nothing, where what is usual has come to an end."""

        def safe(*args: Any) -> None:
            try:
                function(*args)
            except Exception as error:  # noqa: BLE001 - nothing of ours may reach the user
                self.plain_failed(error)

        return safe

    def plain_failed(self, error: BaseException) -> None:
        """From now on nothing is only noted: events take the guarded way."""
        self.guard.fail(PLAIN, error)  # first: what a signal handler of the program raised goes on from here
        self.watcher.plain.failed = True
        self.watcher.halt()

    def around(
        self,
        owner: Any,
        name: str,
        after: Probe,
        letter: str = "",
        count: Callable[[Any], None] | None = None,
    ) -> None:
        """Call `after(result, *args, **kwargs)` when a function of torch's returned.

        With a letter, plain steps just note that, and tell `count`, which can't fail, the first
        argument; the guarded call is for others.
        """
        watcher, plain = self.watcher, self.watcher.plain
        get_ident, event = threading.get_ident, (OTHER, letter)
        mark, number, note = plain.usual.mark, NUMBERS.get(letter, 0), self.plain_inside(plain.other)

        def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                result = original(*args, **kwargs)
                if not is_compiling() and get_ident() == watcher.thread:
                    if letter and plain.resting:
                        if not mark(number):
                            note(event)
                        if count is not None and args:
                            count(args[0])
                    else:
                        after(result, *args, **kwargs)
                return result

            return wrapper

        self.patches.wrap(owner, name, wrap)
