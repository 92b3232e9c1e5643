"""How seams are made: wrapped functions and hooks that call the watcher, in order and under guard."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from torch.compiler import is_compiling

from clew.attach.guard import Guard
from clew.attach.patching import Patches
from clew.attach.plain import OTHER
from clew.attach.watcher import Watcher

CENTRAL = ("forward", "backward", "step")  # without one of these the others make no sense

Probe = Callable[..., None]


class Probes:
    """What every seam needs. Wrappers let a compiler through first: dynamo traces `is_compiling()`
    to a constant, and what follows it disappears."""

    def __init__(self, watcher: Watcher, guard: Guard) -> None:
        self.watcher = watcher
        self.guard = guard
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
            if plain.events:  # what was only noted came before this
                plain.write()
            function(*args, **kwargs)

        return self.guard.probe(name, in_order, self.watcher.halt if name in CENTRAL else None)

    def ask(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """What is done on plain steps; if any of it fails, every step is a closer one again."""
        return self.guard.ask("plain", function, self.watcher.halt)

    def noting(self, letter: str, probe: Probe) -> Probe:
        """On plain steps just note the event, else look closer."""
        plain = self.watcher.plain

        def note(*args: Any, **kwargs: Any) -> None:
            if plain.resting:
                plain.note((OTHER, letter))
            else:
                probe(*args, **kwargs)

        return note

    def around(self, owner: Any, name: str, after: Probe) -> None:
        """Call `after(result, *args, **kwargs)` when a function of torch's returned."""
        watcher = self.watcher

        def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                result = original(*args, **kwargs)
                if not is_compiling() and threading.get_ident() == watcher.thread:
                    after(result, *args, **kwargs)
                return result

            return wrapper

        self.patches.wrap(owner, name, wrap)
