"""Steps of optimizers that are running now: one may call another, or itself, and one may have raised."""

from __future__ import annotations

import sys
from types import FrameType
from typing import TYPE_CHECKING, NamedTuple

from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_pre_hook

if TYPE_CHECKING:
    from clew.hooks.collect_loop.optimizers import OptimizerState

MOST_BETWEEN = 12  # frames from a step to the one that it calls: decorators, and a function or two

_TORCH = register_optimizer_step_pre_hook.__code__.co_filename  # whose functions call the hooks of a step


class Update(NamedTuple):
    """A step of an optimizer."""

    optimizer: int  # its identity
    inner: bool = False  # called by its own step
    noted: OptimizerState | None = None  # by the light recorder; None: it is the full recorder's
    norm: float = 0.0  # of the gradients
    asked: float = 0.0  # when we were told,
    began: float = 0.0  # and when it began


class RunningUpdates:
    """A stack of them, as torch tells only of those that return."""

    def __init__(self) -> None:
        self._running: list[Update] = []

    @property
    def innermost_is_inner(self) -> bool:
        """Whether the newest was called by its own optimizer's step."""
        return bool(self._running) and self._running[-1].inner

    def add(self, update: Update) -> None:
        """It runs from now on."""
        self._running.append(update)

    def is_inner(self, optimizer: Optimizer, maybe: bool = False) -> bool:
        """Whether this is the step of one that is at it already: then it is added as such.

        What has raised is forgotten. `maybe` is whether one that is not on the stack may be at it.
        """
        identity = id(optimizer)
        if maybe or any(update.optimizer == identity for update in self._running):
            if calls_itself(optimizer):
                self.add(Update(identity, inner=True))
                return True
            self._running = [update for update in self._running if update.optimizer != identity]
        return False

    def take(self, optimizer: Optimizer) -> Update | None:
        """The innermost step of this one, which is over; those inside it have raised."""
        while self._running:
            update = self._running.pop()
            if update.optimizer == id(optimizer):
                return update
        return None


def calls_itself(optimizer: Optimizer) -> bool:
    """Whether its `step` was called by its `step`: of a class of the program's, by `super().step()`.

    Torch calls hooks for both, from a function around each.
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
