"""Optimizer steps: which one ends a training step, and which are running now."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, NamedTuple

from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_pre_hook

if TYPE_CHECKING:
    from clew.hooks.collect_loop.optimizers import OptimizerState

MOST_BETWEEN = 12  # most frames between a step and the step it calls: decorators, and a function or two
_TORCH = register_optimizer_step_pre_hook.__code__.co_filename  # its functions call the hooks of a step


class Cycle:
    """Learns the order in which optimizers step, by their numbers.

    With one optimizer, each of its steps ends a training step. With several (a GAN), the last of them ends
    it; which one is last is known as soon as the first has stepped again. An optimizer takes over when it
    steps twice while the known ones don't, or when the first no longer exists: a second training has begun.
    """

    def __init__(self, exists: Callable[[int], bool] = lambda index: True) -> None:
        self._exists = exists
        self.lead: int | None = None
        self.only: int | None = None  # the lead while no other is known: each of its steps ends a step
        self._closer: int | None = None
        self._others: list[int] = []  # those that stepped since the lead did, in order
        self._lead_steps = 0  # since the closer's last step
        self._most_lead_steps = 1

    def ends_with(self, index: int) -> bool:
        """An optimizer stepped: whether that ends the training step."""
        if self._closer is not None:
            return self._known_cycle(index, self._closer)
        if self.lead is None or index == self.lead:
            if self._others:  # the lead stepped again: from now on the last of the others closes the step
                self._closer = self._others[-1]
                self._others = []
                self._lead_steps = 1
                return False
            self.lead = self.only = index
            return True
        return self._stranger(index)

    def _known_cycle(self, index: int, closer: int) -> bool:
        if index == closer:
            self._most_lead_steps = max(self._most_lead_steps, self._lead_steps)
            self._lead_steps = 0
            self._others = []
            return True
        if index != self.lead:
            return self._stranger(index)
        self._lead_steps += 1
        if self._lead_steps > 2 * self._most_lead_steps + 2:  # the closer has stopped stepping
            self._take_over(index)
            return True
        return False

    def _stranger(self, index: int) -> bool:
        if index in self._others or (self.lead is not None and not self._exists(self.lead)):
            self._take_over(index)
            return True
        self._others.append(index)
        self.only = None
        return False

    def _take_over(self, index: int) -> None:
        self.lead = self.only = index
        self._closer = None
        self._others = []
        self._lead_steps = 0
        self._most_lead_steps = 1


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
