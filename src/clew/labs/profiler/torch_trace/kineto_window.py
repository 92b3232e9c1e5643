"""One window of steps under torch's profiler: opened and closed between steps, read later."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.autograd import profiler as autograd_profiler

from clew.hooks.collect_layers.trained_models import ModelBook, Root
from clew.hooks.entry.patches import Patches
from clew.labs.profiler.profile_windows import Skipped
from clew.labs.profiler.torch_trace.module_scopes import Scope, Scopes
from clew.labs.profiler.torch_trace.torch_events import STEP, named, profiler_is_on

OCCUPIED = "the program uses torch.profiler itself, so {} not profiled"


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
        """Write a Chrome trace; `.gz` compresses it."""
        self.profiler.export_chrome_trace(str(path))


class ProgramProfiler:
    """Detects when the program itself uses torch's profiler, so that Clew makes room for it immediately."""

    def __init__(self) -> None:
        self.is_on = False
        self.ours = False  # the current call is Clew's own
        self.on_start: Callable[[], None] | None = None
        self._patches = Patches()

    def install(self) -> None:
        """Wrap the three functions that switch every torch profiler."""
        for name in ("_prepare_profiler", "_enable_profiler"):
            self._patches.wrap(autograd_profiler, name, self._began)
        self._patches.wrap(autograd_profiler, "_disable_profiler", self._ended)

    def remove(self) -> None:
        self._patches.remove()

    def _began(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if not self.ours:
                self.is_on = True
                if self.on_start is not None:
                    self.on_start()
            return original(*args, **kwargs)

        return wrapper

    def _ended(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if not self.ours:
                self.is_on = False
            return original(*args, **kwargs)

        return wrapper


class TorchProfilerWindow:
    """Torch's profiler with the running modules in its trace; everything is called on the training thread."""

    refused = ""  # why a window was not opened, while the program uses torch's profiler
    displaced = ""  # why it was ended early, because the program started that profiler
    too_long = ""  # why it was ended early, because there were too many module calls
    unclosed = ""  # what failed when it was to be ended early

    def __init__(
        self, models: ModelBook, find: Callable[[nn.Module], Root | None], program: ProgramProfiler
    ) -> None:
        self.note: str | None = None  # why it was ended early
        self.closed = True
        self._program = program
        self._scopes = Scopes(models, find, lambda: self._end_early(self.too_long))
        self._torch_profiler: Any = None

    def _open(self, **options: Any) -> None:
        """Start the profiler; raises `Skipped` if the program uses its own."""
        if self._program.is_on or profiler_is_on():
            raise Skipped(self.refused)
        self._torch_profiler = torch.profiler.profile(activities=activities(), **options)
        self.closed = False
        self._program.ours = True
        try:
            self._scopes.install()
            with quiet_start():
                self._torch_profiler.start()
        except BaseException:
            self._scopes.remove()
            self.closed = True
            raise
        finally:
            self._program.ours = False
        self._program.on_start = lambda: self._end_early(self.displaced)

    def _close(self) -> None:
        if self.closed:
            return
        self.closed = True
        self._program.on_start = None
        self._scopes.remove()
        self._program.ours = True
        try:
            self._torch_profiler.stop()
        finally:
            self._program.ours = False

    def _end_early(self, note: str) -> None:
        self.note = note
        try:
            self._close()
        except Exception as error:  # noqa: BLE001 - called in the middle of the user's own code
            self.note = f"{self.unclosed}: {type(error).__name__}: {error}"


class KinetoWindow(TorchProfilerWindow):
    """Records complete steps in detail."""

    refused = OCCUPIED.format("these steps are")
    displaced = OCCUPIED.format("a window was")
    too_long = "a window was ended early: one of its steps was too long (an evaluation?)"
    unclosed = "a window could not be ended"

    def __init__(
        self, models: ModelBook, find: Callable[[nn.Module], Root | None], program: ProgramProfiler
    ) -> None:
        super().__init__(models, find, program)
        self._marks: list[int] = []

    def start(self, step: int) -> None:
        """Begin with this step; raises `Skipped` if the program uses its own profiler."""
        self._open(record_shapes=True, with_flops=True)
        self.mark(step)

    def mark(self, step: int) -> None:
        """This step begins, and the previous one has ended."""
        if not self.closed:
            with named(f"{STEP}{step}"):
                self._marks.append(step)

    def stop(self) -> TraceDetail | None:
        """End; what came after the last mark is left out. None if no step was complete."""
        self._close()
        if self._torch_profiler is None or len(self._marks) < 2:
            return None
        return TraceDetail(self._torch_profiler, self._scopes.table, self._marks[:-1])


def activities() -> list[Any]:
    """The host, and the accelerator if torch's profiler supports it."""
    kinds = [torch.profiler.ProfilerActivity.CPU]
    if torch.cuda.is_available():
        kinds.append(torch.profiler.ProfilerActivity.CUDA)
    return kinds


# -- silence: messages of torch's profiler on stderr are of no use to the user --

LEVEL = "KINETO_LOG_LEVEL"  # read when the profiler is first used in a process
SILENT = "9"
_ERROR = 2  # of c10's log levels


@contextlib.contextmanager
def quiet_start() -> Iterator[None]:
    """Around the start of a profiler: silences Kineto, unless the user has set its log level."""
    if LEVEL in os.environ:
        yield
        return
    os.environ[LEVEL] = SILENT
    try:
        yield
    finally:
        os.environ.pop(LEVEL, None)


class QuietAllocator:
    """While memory is profiled on the CPU, every thousandth free of an older block warns on stderr."""

    def __init__(self) -> None:
        self._before: int | None = None

    @property
    def possible(self) -> bool:
        return _log_level() is not None

    def begin(self) -> None:
        level = _log_level()
        if level is not None and level.value < _ERROR:
            self._before, level.value = level.value, _ERROR

    def end(self) -> None:
        level = _log_level()
        if level is not None and self._before is not None:
            level.value, self._before = self._before, None


@cache
def _log_level() -> Any:
    """The c10 variable for the log level; None if there is none."""
    folder = os.path.join(os.path.dirname(torch.__file__), "lib")
    for name in ("libc10.so", "libc10.dylib", "c10.dll"):
        try:
            return ctypes.c_int.in_dll(ctypes.CDLL(os.path.join(folder, name)), "FLAGS_caffe2_log_level")
        except (OSError, ValueError):
            continue
    return None
