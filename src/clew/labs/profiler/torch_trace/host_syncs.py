"""Finds host syncs: calls that read a tensor's values and wait for all queued work on an accelerator.

During a window of steps, the methods of `Tensor` that sync are wrapped; each call is timed and
counted at the user's line. On the CPU such a call costs almost nothing, as its seconds show.
"""

from __future__ import annotations

import linecache
import sys
import threading
from collections.abc import Callable, Iterable
from functools import partial, wraps
from time import perf_counter
from types import FrameType
from typing import Any

import torch
from torch import Tensor

from clew.hooks.entry.patches import INVISIBLE, invisible
from clew.hooks.entry.user_line import HIDDEN, USER, kind_of, user_line
from clew.labs.profiler.torch_trace.kineto_window import TraceDetail
from clew.records.step_costs import Sync
from clew.records.version import PACKAGE

_METHODS = {
    "item": ".item()",
    "tolist": ".tolist()",
    "numpy": ".numpy()",
    "cpu": ".cpu()",
    "nonzero": "nonzero",
    "masked_select": "masked_select",
    "unique": "unique",
    "__bool__": "bool()",
    "__repr__": "print()",
    "__format__": "print()",
}
# They warn, once per process, about a tensor that has a graph; the warning must name the user's line.
_WARNING = {"__float__": "float()", "__int__": "int()", "__index__": "int()"}
_ABSENT = object()
_COMPILED = "host synchronisations were not counted: torch.compile would compile Clew's wrappers too"


class SyncWatch:
    """Counts over one or more windows. Everything is called on the training thread."""

    def __init__(self) -> None:
        self.note: str | None = None
        self.steps = 0  # whole ones
        self._found: dict[tuple[str, str | None, int | None], list[float]] = {}  # calls, timed, seconds
        self._away = 0  # calls on tensors of an accelerator
        self._inside = False
        self._thread = 0
        self._entries: list[tuple[str, Any, Any]] = []

    def start(self, compiled: bool = False) -> None:
        """Install the wrappers. Indexing is left alone: a type remembers that it was once replaced."""
        if compiled:
            self.note = _COMPILED
            return
        self._thread = threading.get_ident()
        for name, op in _METHODS.items():
            self._put(name, partial(self._timed, op))
        for name, op in _WARNING.items():
            self._put(name, partial(_Warning, self, op))
        self._put("to", partial(self._timed, ".to('cpu')", applies=_to_host))

    def mark(self, _step: int) -> None:
        """A step has ended, and the next begins; the first one began with `start`."""
        self.steps += 1

    def stop(self) -> None:
        """Remove the wrappers; if someone has wrapped one of them since, theirs stays.

        It is called right after the last mark: nothing has happened since.
        """
        for name, before, ours in reversed(self._entries):
            if vars(Tensor).get(name) is not ours:
                continue
            if before is _ABSENT:
                delattr(Tensor, name)  # the inherited method is visible again
            else:
                setattr(Tensor, name, before)
        self._entries.clear()

    @property
    def accelerator(self) -> bool:
        """Whether any tensor that was read is on an accelerator."""
        return self._away > 0

    def found(self) -> tuple[Sync, ...]:
        """The counts per step, the longest first."""
        steps = max(self.steps, 1)
        syncs = [
            Sync(op, calls / steps, seconds * calls / max(timed, 1.0) / steps, file, line, _code(file, line))
            for (op, file, line), (calls, timed, seconds) in self._found.items()
        ]
        return tuple(sorted(syncs, key=lambda sync: -sync.seconds))

    def _put(self, name: str, make: Callable[[Any], Any]) -> None:
        original = getattr(Tensor, name, None)
        if original is None:
            return
        before, ours = vars(Tensor).get(name, _ABSENT), make(original)
        setattr(Tensor, name, ours)
        self._entries.append((name, before, ours))

    def _timed(self, op: str, original: Any, applies: Callable[..., bool] | None = None) -> Any:
        """The original method, timed."""
        get_ident = threading.get_ident

        def wrapper(*args: Any, **kwargs: Any) -> Any:
            passes = self._inside or get_ident() != self._thread
            if passes or (applies is not None and not applies(*args, **kwargs)):
                return original(*args, **kwargs)
            self._inside, began = True, perf_counter()
            try:
                return original(*args, **kwargs)
            finally:
                seconds = perf_counter() - began
                self._inside = False
                self._count(op, args[0], seconds)

        return invisible(wraps(original, updated=())(wrapper))

    def _count(self, op: str, tensor: Tensor, seconds: float | None) -> None:
        """Counted at the program's line. Nothing here may reach the program: the call has its result."""
        try:
            with torch._C.DisableTorchFunction():  # or a subclass would see it
                away = not tensor.is_cpu
            caller = _caller()
            if caller is None or (not away and kind_of(caller) == HIDDEN):
                return  # Clew's, or torch's own on a host tensor
            self._away += away
            row = self._found.setdefault((op, *user_line()), [0.0, 0.0, 0.0])
            row[0] += 1
            if seconds is not None:
                row[1] += 1
                row[2] += seconds
        except Exception as error:  # noqa: BLE001 - see above
            self.note = f"host synchronisations could not all be counted: {type(error).__name__}: {error}"


def _caller() -> str | None:
    """The file that called the wrapper; None if it is Clew's."""
    between = (_caller.__code__.co_filename, INVISIBLE)
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename in between:
        frame = frame.f_back
    if frame is None:
        return None
    file = frame.f_code.co_filename
    return None if file.startswith(PACKAGE) and kind_of(file) != USER else file


def _code(file: str | None, line: int | None) -> str:
    return linecache.getline(file, line).strip()[:200] if file and line else ""


class _Warning:
    """A conversion: the first one of a tensor with a graph runs without a Clew frame around it."""

    def __init__(self, watch: SyncWatch, op: str, original: Any) -> None:
        self._watch = watch
        self._op = op
        self._original = original
        self._timed = watch._timed(op, original)
        self._warned = False

    def __get__(self, tensor: Tensor | None, owner: Any = None) -> Any:
        if tensor is None:
            return self._original
        with torch._C.DisableTorchFunction():
            warns = tensor.requires_grad and not self._warned
        if warns:
            self._warned = True
            self._watch._count(self._op, tensor, None)
            return self._original.__get__(tensor, owner)
        return self._timed.__get__(tensor, owner)


def _to_host(tensor: Tensor, *args: Any, **kwargs: Any) -> bool:
    with torch._C.DisableTorchFunction():
        if tensor.is_cpu:
            return False
    target = kwargs.get("device", args[0] if args else None)
    return str(target).startswith("cpu")


def by_mask(details: Iterable[TraceDetail], counted: Iterable[Sync]) -> tuple[Sync, ...]:
    """Syncs without a method call: indexing by a mask and `torch.nonzero`, from the trace, without a line.

    The number of elements a mask selects is known only once it has been read: torch runs `nonzero` for it.
    """
    listed = list(details)
    steps = sum(len(detail.steps) for detail in listed)
    events = [e.duration_ns() for detail in listed for e in detail.events() if e.name() == "aten::nonzero"]
    known = sum(sync.calls for sync in counted if sync.op == "nonzero")
    calls = len(events) / max(steps, 1)
    if calls - known < 0.5:
        return ()
    seconds = sum(events) / 1e9 / steps * (calls - known) / calls
    return (Sync("masked indexing", calls - known, seconds),)
