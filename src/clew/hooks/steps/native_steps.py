"""Light steps noted by the compiled library: one model on one batch, one loss, one optimizer.

Most programs train in such steps. In a step of one millisecond, handling its events in Python costs several
hundredths of it, nearly all of it waiting for memory, because torch has pushed our code and data out of the
caches. So functions of the library (measure/kernel/steps.c) run in front of the light recorder's methods.
They note a step like those before in a row of numbers. They pass everything else on to the recorder, which
takes over what was noted of that step (`take`) and continues in Python until its notes are next written.

The rows are bounded where they are written: the library knows how many rows there is room for, and passes on
what does not fit.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from threading import get_ident
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from clew.hooks.entry.sink import Array
from clew.hooks.steps.forward_calls import tracing, transforming
from clew.hooks.steps.step_clock import StepColumn
from clew.measure import stats
from clew.measure.kernel.compiled_library import Natives

ROOM = 1_024  # steps that may wait to be written, however fast they are
EVENTS = {1: "d", 2: "f", 3: "b", 4: "s", 5: "z", 6: "h"}  # the digits of a step's code, one per event
_BASE = 16

# The recorder methods that functions of the library run in front of. All of them pass on, except
# `loss_entered`, which the library answers itself.
METHODS = (
    "batch_delivered",
    "forward_entered",
    "forward_left",
    "backward_entered",
    "backward_left",
    "update_entered",
    "update_left",
    "gradients_zeroed",
    "scheduler_stepped",
)

_ASKED: dict[str, Any] = {
    "clock": perf_counter,
    "grad_enabled": torch.is_grad_enabled,
    "tracing": tracing,
    "transforming": transforming,
    "is_neg": torch.is_neg,
    "method": Tensor.backward.__code__,
    "training": "training",
    "grad_fn": "grad_fn",
    "version_of": "_version",
    "f_back": "f_back",
    "f_code": "f_code",
    "f_lasti": "f_lasti",
    "param_groups": "param_groups",
    "lr": "lr",
    "delivered": "delivered",
}


class Steps(ctypes.Structure):
    """Same layout as in steps.c."""

    _fields_ = [
        ("model", ctypes.c_void_p),
        ("optimizer", ctypes.c_void_p),
        ("caller", ctypes.c_void_p),
        ("at", ctypes.c_int64),
        ("gradients", ctypes.c_void_p),
        ("thread", ctypes.c_uint64),
        ("latest", ctypes.c_double),
        ("most", ctypes.c_int64),
        ("rows", ctypes.c_void_p),
        ("room", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in _ASKED),
        *((name, ctypes.c_void_p) for name in METHODS),
        ("round_off", ctypes.c_void_p),
        ("count_scheduler", ctypes.c_void_p),
        ("replay_inputs", ctypes.c_void_p),
        *(
            (name, ctypes.c_int64)
            for name in ("active", "steps", "doing", "others", "forwards", "backwards", "batches", "inner")
        ),
        ("began", ctypes.c_double),
        ("asked", ctypes.c_double),
        ("row", ctypes.c_double * len(StepColumn)),
        ("args", ctypes.c_void_p),
        ("version", ctypes.c_int64),
    ]


@dataclass(frozen=True)
class OpenStep:
    """An open step that differs from those before, as far as it has run."""

    events: tuple[str, ...]
    doing: str  # "f", "b" or "s" while a model, a backward or an optimizer is running
    began: float
    asked: float
    waited: float  # seconds,
    ran: float  # of the forward,
    derived: float  # and of the backward
    batch: int
    loss: float
    norm: float
    args: tuple[Any, ...] | None  # the model's arguments
    version: int


def natives() -> Natives | None:
    """The functions of the library, or None if it is missing or cannot read torch's state."""
    return stats.KERNEL.natives if stats.KERNEL is not None else None


class NativeSteps:
    """The library's notes and functions: see steps.c."""

    def __init__(
        self,
        replay_inputs: Any,
        methods: dict[str, Callable[..., Any]],
        round_off: Callable[[], None],
        count_scheduler: Callable[[Any], None],
    ) -> None:
        """`methods` are the recorder's own, by the names in `METHODS`."""
        self.active = False  # rows are being noted, or wait to be taken
        self.functions = dict(methods)  # called instead of the methods
        self._forget: Callable[[], None] = nothing
        found = natives()
        self.available = found is not None
        if found is None:
            return
        self._rows = np.zeros((ROOM, len(StepColumn)))
        borrowed = {**_ASKED, **methods, "round_off": round_off, "count_scheduler": count_scheduler}
        self._kept: tuple[Any, ...] = (replay_inputs, borrowed)  # the library only borrows references
        asked = {name: id(thing) for name, thing in borrowed.items()}
        self._steps = Steps(rows=self._rows.ctypes.data, room=ROOM, replay_inputs=id(replay_inputs), **asked)
        for name in (*METHODS, "loss_entered"):
            self.functions[name] = found.function(name, ctypes.addressof(self._steps))
        self._forget = found.function("forget", ctypes.addressof(self._steps))

    def begin(
        self,
        model: weakref.ref[nn.Module],
        optimizer: weakref.ref[Optimizer],
        gradients: int,
        caller: tuple[Any, int],
        until: tuple[float, int],
    ) -> None:
        """Note steps of this model and optimizer, up to the given time and number of steps.

        `caller` is where the program calls `backward()`.
        """
        steps = self._steps
        self._kept = (*self._kept[:2], model, optimizer, caller[0])
        steps.model, steps.optimizer, steps.gradients = id(model), id(optimizer), gradients
        steps.caller, steps.at = id(caller[0]), caller[1]
        steps.latest, steps.most = until[0], min(until[1], steps.room)
        steps.thread = get_ident()
        steps.active = 1
        self.active = True

    @property
    def steps(self) -> int:
        """Number of finished steps that have not been taken."""
        return int(self._steps.steps) if self.active else 0

    @property
    def has_begun(self) -> bool | None:
        """Same as `LightRecorder.has_begun`."""
        if self._steps.forwards or self._steps.backwards:
            return True
        return False if self._steps.steps else None

    @property
    def is_updating(self) -> bool:
        """Whether an optimizer step is running, as far as the library knows."""
        return self.active and EVENTS.get(self._steps.doing) == "s"

    def set_inner(self, inner: bool) -> None:
        """Set whether an optimizer step is running that the optimizer's own step has called."""
        if self.available:
            self._steps.inner = inner

    def stop(self) -> None:
        """Stop noting steps; the noted ones wait to be taken."""
        if self.available:
            self._steps.active = 0

    def drop(self) -> None:
        """The running call raised: it is not noted, but the references to its arguments stay."""
        if self.available:
            self._steps.doing = 0

    def take(self) -> tuple[Array, OpenStep]:
        """Return the rows of the finished steps, and the open one. No more steps are noted after this."""
        steps = self._steps
        steps.active, self.active = 0, False
        row, args = list(steps.row), steps.args
        taken = OpenStep(
            events=events_of(row[StepColumn.EVENTS]),
            doing=EVENTS.get(steps.doing, ""),
            began=steps.began,
            asked=steps.asked,
            waited=row[StepColumn.WAITING],
            ran=row[StepColumn.RUNNING],
            derived=row[StepColumn.DERIVING],
            batch=int(row[StepColumn.SIZE]),
            loss=row[StepColumn.LOSS],
            norm=row[StepColumn.NORM],
            args=ctypes.cast(args, ctypes.py_object).value if args else None,
            version=steps.version,
        )
        rows = self._rows[: steps.steps].copy()
        self._forget()
        return rows, taken


def events_of(code: float) -> tuple[str, ...]:
    """Events of a step, in order."""
    digits, left = [], int(code)
    while left:
        left, digit = divmod(left, _BASE)
        digits.append(EVENTS[digit])
    return tuple(reversed(digits))


def nothing(*_: Any) -> None:
    """Does nothing: without the library there are no notes."""
