"""One window of steps under torch's profiler: opened and closed between steps, read later."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.autograd import profiler as autograd_profiler

from clew.hooks.collect_layers.trained_models import ModelBook, Root
from clew.hooks.entry.patches import Patches
from clew.labs.profiler.torch_trace.module_scopes import Scope, Scopes
from clew.labs.profiler.torch_trace.profiler_stderr import quiet_start
from clew.labs.profiler.torch_trace.trace_ranges import STEP, named, profiler_is_on

THEIRS = "the program uses torch.profiler itself, so {} not profiled"


class CannotOpen(Exception):  # noqa: N818 - says what the matter is
    """A window can't be opened now."""


@dataclass
class TraceDetail:
    """What a window recorded: torch's own trace, not yet read."""

    profiler: Any  # torch.profiler.profile, stopped
    table: dict[str, Scope]
    steps: list[int] = field(default_factory=list)  # whole ones

    def events(self) -> list[Any]:
        """Torch's raw events."""
        inner = self.profiler.profiler
        results = inner.kineto_results if inner is not None else None
        listed: list[Any] = results.events() if results is not None else []
        return listed

    def save(self, path: Path) -> None:
        """As a Chrome trace; `.gz` compresses it."""
        self.profiler.export_chrome_trace(str(path))


class Courtesy:
    """Knows when the program profiles with torch itself, and makes room for it at once."""

    def __init__(self) -> None:
        self.theirs = False
        self.mine = False  # what is called now is called by us
        self.give_way: Callable[[], None] | None = None
        self._patches = Patches()

    def install(self) -> None:
        """Listen at the three functions that every profiler of torch's is switched with."""
        for name in ("_prepare_profiler", "_enable_profiler"):
            self._patches.wrap(autograd_profiler, name, self._began)
        self._patches.wrap(autograd_profiler, "_disable_profiler", self._ended)

    def remove(self) -> None:
        self._patches.remove()

    def _began(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if not self.mine:
                self.theirs = True
                if self.give_way is not None:
                    self.give_way()
            return original(*args, **kwargs)

        return wrapper

    def _ended(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if not self.mine:
                self.theirs = False
            return original(*args, **kwargs)

        return wrapper


class KinetoWindow:
    """Records whole steps in detail; everything is called on the training thread."""

    def __init__(
        self, models: ModelBook, find: Callable[[nn.Module], Root | None], courtesy: Courtesy
    ) -> None:
        self.note: str | None = None  # why it was ended early
        self.closed = True
        self._courtesy = courtesy
        self._scopes = Scopes(models, find, self._overflow)
        self._profiler: Any = None
        self._marks: list[int] = []

    def start(self, step: int) -> None:
        """Begin with this step; raises `CannotOpen` if the program has a profiler of its own."""
        if self._courtesy.theirs or profiler_is_on():
            raise CannotOpen(THEIRS.format("these steps are"))
        self._profiler = torch.profiler.profile(activities=activities(), record_shapes=True, with_flops=True)
        self.closed = False
        self._courtesy.mine = True
        try:
            self._scopes.install()
            with quiet_start():
                self._profiler.start()
        except BaseException:
            self._scopes.remove()
            self.closed = True
            raise
        finally:
            self._courtesy.mine = False
        self._courtesy.give_way = self._give_way
        self.mark(step)

    def mark(self, step: int) -> None:
        """This step begins, and the one before it has ended."""
        if not self.closed:
            with named(f"{STEP}{step}"):
                self._marks.append(step)

    def stop(self) -> TraceDetail | None:
        """End; what came after the last mark is left out. None if no step was whole."""
        self._close()
        if self._profiler is None or len(self._marks) < 2:
            return None
        return TraceDetail(self._profiler, self._scopes.table, self._marks[:-1])

    def _close(self) -> None:
        if self.closed:
            return
        self.closed = True
        self._courtesy.give_way = None
        self._scopes.remove()
        self._courtesy.mine = True
        try:
            self._profiler.stop()
        finally:
            self._courtesy.mine = False

    def _give_way(self) -> None:
        self.note = THEIRS.format("a window was")
        self._end_early()

    def _overflow(self) -> None:
        self.note = "a window was ended early: one of its steps was too long (an evaluation?)"
        self._end_early()

    def _end_early(self) -> None:
        try:
            self._close()
        except Exception as error:  # noqa: BLE001 - called in the midst of the user's own code
            self.note = f"a window could not be ended: {type(error).__name__}: {error}"


def activities() -> list[Any]:
    """Of the host, and of the accelerator if there is one that torch's profiler knows."""
    kinds = [torch.profiler.ProfilerActivity.CPU]
    if torch.cuda.is_available():
        kinds.append(torch.profiler.ProfilerActivity.CUDA)
    return kinds
