"""What is held of the step that is running, so that it can be run again after an alarm.

References only: arguments of the models, and the state of those random generators that forwards
were seen to draw from. On a plain step this is a few attributes set.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

MOST_CALLS = 4  # of models before one backward; with more of them (an evaluation) none are held
LEARNING = 4  # steps in which it is learned which generators a step draws from

Call = tuple[nn.Module, Any, Any]


class Derived:
    """Stands for an argument that the program computed with gradients: holding it would hold its graph."""

    def __repr__(self) -> str:
        return "<computed in the step>"


DERIVED = Derived()
NO_STATES = (None, None, None)


class Holding:
    """The models' calls since the last backward, and how the last backward went."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.rng: tuple[Any, Any, Any] = NO_STATES  # torch, numpy, python: before the first call
        self.autocast: tuple[bool, Any] = (False, None)
        self.loss = float("nan")
        self.line: tuple[str | None, int | None] = (None, None)  # of the last backward()
        self.backwards = 0  # since the last step
        self.accumulates = False  # there were steps with more than one backward
        self._full = False  # too many calls
        self.scaled = False  # a GradScaler is at work: infinite gradients are part of that
        self._closed = False  # a backward came after these calls
        self._draws = [False, False, False]
        self._looks = 0
        self._compare: tuple[Any, Any, Any] | None = None

    # -- plain steps --

    def forward(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        """A model is about to run in a plain step."""
        if self._closed:
            self._open()
        if not self.calls:
            self.rng = self._states(self._draws) if True in self._draws else NO_STATES
            if len(args) == 1 and not kwargs and not self._full and not is_derived(args[0]):
                self.calls.append((module, args, kwargs))
                return
        self._append(module, args, kwargs)

    def backward(self, loss: float, line: tuple[str | None, int | None]) -> None:
        """`backward()` was called."""
        self.loss = loss
        self.line = line
        self.backwards += 1
        self._closed = True
        if self.backwards == 2:
            self.accumulates = True

    def clear(self) -> None:
        """The step is over."""
        self.backwards = 0
        self._closed = self._full = False
        if self.calls:
            self.calls = []

    def _append(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        if len(self.calls) >= MOST_CALLS:
            self.calls = []
            self._full = True
        if not self._full:
            if has_graph(args) or (kwargs and has_graph(kwargs.values())):
                args = tuple(DERIVED if has_graph((a,)) else a for a in args)
                kwargs = {name: DERIVED if has_graph((a,)) else a for name, a in kwargs.items()}
            self.calls.append((module, args, kwargs))

    # -- other steps --

    def before_forward(self) -> None:
        """A model is about to run: while learning, all generators are looked at."""
        if self._closed:
            self._open()
        if self.calls:
            return
        learning = self._looks < LEARNING
        self.rng = self._states([True, True, True] if learning else self._draws)
        self._compare = self.rng if learning else None
        enabled = torch.is_autocast_enabled("cpu")
        self.autocast = (enabled, torch.get_autocast_dtype("cpu") if enabled else None)

    def after_forward(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        """The model returned."""
        self._append(module, args, kwargs if isinstance(kwargs, dict) else {})

    def before_backward(self) -> None:
        """Which generators were drawn from since the first forward?"""
        if self._compare is None:
            return
        before, self._compare = self._compare, None
        self._looks += 1
        after = self._states([not known for known in self._draws])
        for number, (old, new) in enumerate(zip(before, after, strict=True)):
            if new is not None:
                self._draws[number] = not _same(old, new)

    def _open(self) -> None:
        self._closed = self._full = False
        self.calls = []

    @staticmethod
    def _states(which: list[bool]) -> tuple[Any, Any, Any]:
        numpy = sys.modules.get("numpy") if which[1] else None
        return (
            torch.default_generator.get_state() if which[0] else None,
            numpy.random.get_state() if numpy is not None else None,
            random.getstate() if which[2] else None,
        )


def is_derived(value: Any) -> bool:
    """Whether it is anything but a tensor that comes from no computation."""
    return type(value) is not torch.Tensor or value.grad_fn is not None


def has_graph(values: Iterable[Any]) -> bool:
    """Whether one of the values is a tensor that gradients flow through."""
    for value in values:  # not any(): a generator costs more than the loop
        if isinstance(value, torch.Tensor):
            if value.grad_fn is not None:
                return True
        elif isinstance(value, (tuple, list)) and has_graph(value):
            return True
    return False


def _same(old: Any, new: Any) -> bool:
    if isinstance(old, torch.Tensor):
        return torch.equal(old, new)
    if isinstance(old, tuple) and len(old) == 5:  # numpy's: an array among numbers
        return bool((old[1] == new[1]).all()) and old[2:] == new[2:]
    return bool(old == new)
