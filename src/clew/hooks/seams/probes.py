"""Base for all wrappers and hooks on torch: they call the watcher in order and under a guard."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch
from torch.compiler import is_compiling

from clew.hooks.entry.guard import Guard
from clew.hooks.entry.patches import Patches
from clew.hooks.steps.recorder import Recorder
from clew.hooks.steps.step_machine import StepMachine
from clew.hooks.steps.watcher import Watcher

Probe = Callable[..., None]


def report(machine: StepMachine, recorder: Recorder, event: str, *args: Any) -> None:
    """Report an event; if the recorder fails, another takes its place and gets the event again.

    Events of every step are reported without this function: see `recorder`.
    """
    try:
        getattr(recorder, event)(*args)
    except Exception as error:  # noqa: BLE001 - nothing of ours may reach the user
        getattr(machine.failed(recorder, error), event)(*args)


class Probes:
    """What every seam needs.

    Wrappers first check whether a compiler is tracing: dynamo traces `is_compiling()` to a constant, so the
    code after it disappears.
    """

    def __init__(self, watcher: Watcher, guard: Guard) -> None:
        self.watcher = watcher
        self.machine = watcher.machine
        self.guard = guard
        guard.grad_enabled, guard.set_grad_enabled = torch.is_grad_enabled, torch._C._set_grad_enabled
        self.patches = Patches()
        self.handles: list[Any] = []

    def remove(self) -> None:
        """Remove all wrappers and hooks."""
        for handle in self.handles:
            handle.remove()
        self.handles.clear()
        self.patches.remove()

    def probe(self, name: str, function: Callable[..., None]) -> Probe:
        """Guard a callback that is not an event of a step: see `StepMachine.probe`."""
        return self.machine.probe(name, function)

    def around(self, owner: Any, name: str, after: Probe) -> None:
        """Call the guarded `after(result, *args, **kwargs)` when a torch function has returned."""
        machine, get_ident = self.machine, threading.get_ident

        def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                result = original(*args, **kwargs)
                if not is_compiling() and get_ident() == machine.thread:
                    after(result, *args, **kwargs)
                return result

            return wrapper

        self.patches.wrap(owner, name, wrap)
