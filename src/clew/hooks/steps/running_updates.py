"""Stack of optimizer steps that are running now: one may call another or itself, and one may have raised."""

from __future__ import annotations

import sys
from types import FrameType
from typing import TYPE_CHECKING, NamedTuple

from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_pre_hook

if TYPE_CHECKING:
    from clew.hooks.collect_loop.optimizers import OptimizerState

MOST_BETWEEN = 12  # most frames between a step and the step it calls: decorators, and a function or two

_TORCH = register_optimizer_step_pre_hook.__code__.co_filename  # its functions call the hooks of a step


class Update(NamedTuple):
    """One optimizer step."""

    optimizer: int  # its id
    inner: bool = False  # called by its own step
    noted: OptimizerState | None = None  # set by the light recorder; None: it belongs to the full recorder
    norm: float = 0.0  # of the gradients
    asked: float = 0.0  # when the hook was called,
    began: float = 0.0  # and when it began


class RunningUpdates:
    """A stack of running steps; torch's hooks report only those that return."""

    def __init__(self) -> None:
        self._running: list[Update] = []

    @property
    def innermost_is_inner(self) -> bool:
        """Whether the newest was called by its own optimizer's step."""
        return bool(self._running) and self._running[-1].inner

    def add(self, update: Update) -> None:
        """Add a step that runs from now on."""
        self._running.append(update)

    def is_inner(self, optimizer: Optimizer, maybe: bool = False) -> bool:
        """Whether this optimizer is already in a step: then this one is added as an inner step.

        Steps that have raised are dropped. `maybe` says whether a step that is not on the stack may be
        running.
        """
        identity = id(optimizer)
        if maybe or any(update.optimizer == identity for update in self._running):
            if calls_itself(optimizer):
                self.add(Update(identity, inner=True))
                return True
            self._running = [update for update in self._running if update.optimizer != identity]
        return False

    def take(self, optimizer: Optimizer) -> Update | None:
        """Remove and return this optimizer's innermost step, which is over; steps inside it have raised."""
        while self._running:
            update = self._running.pop()
            if update.optimizer == id(optimizer):
                return update
        return None


def calls_itself(optimizer: Optimizer) -> bool:
    """Whether its `step` was called by its own `step`: a class of the program's calls `super().step()`.

    Torch calls the hooks for both, from a wrapper around each.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename != _TORCH:
        frame = frame.f_back
    if frame is None:
        return False
    hooked = frame.f_code
    for _ in range(MOST_BETWEEN):
        frame = frame.f_back if frame is not None else None
        if frame is not None and frame.f_code is hooked and frame.f_locals.get("self") is optimizer:
            return True
    return False
