"""Inputs of the current step, kept so that the step can be replayed after an alarm.

Keeps references only: the models' arguments, and the state of those random generators that forwards were seen
to use. On a light step this just sets a few attributes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

from clew.measure.nested_tensors import data_tensors
from clew.measure.readable_tensors import is_nonfinite
from clew.measure.rng import host_states
from clew.records.site import Line

MOST_CALLS = 4  # model calls before one backward; with more of them (an evaluation) none are kept
LEARNING = 4  # steps in which we learn which generators a step uses

Call = tuple[nn.Module, Any, Any]
Versions = tuple[int, ...]


class Derived:
    """Stands for an argument computed with gradients: a reference to it would keep its graph alive."""

    def __repr__(self) -> str:
        return "<computed in the step>"


DERIVED = Derived()
NO_STATES = (None, None, None)


class ReplayInputs:
    """The models' calls since the last backward, and how the last backward went.

    At every light step, a method would be one more call. So recorders and the library (`steps.c`) set
    `delivered`, and `LightRecorder.forward_entered` does itself what `only_call` does. Of the others, only
    `scaled` is set from outside.
    """

    def __init__(self) -> None:
        self._calls: list[Call] = []
        self._versions: list[Versions] = []  # versions of the tensors in each call, to find changes
        # The common light step: see `only_call`. It counts as a call like any other.
        self.first: tuple[nn.Module, tuple[Any, ...], int] | None = None
        self.delivered: Any = None  # the loader's last batch
        self.rng: tuple[Any, Any, Any] = NO_STATES  # torch, numpy, python: states before the first call
        self.autocast: tuple[bool, Any] = (False, None)
        self.loss = float("nan")
        self.line: Line = (None, None)  # of the last backward()
        self.backwards = 0  # since an optimizer last stepped
        self.repeats = 0  # how many of them in a row were called on the same line
        self.accumulates = False  # some step had more than one backward
        self._in_parts = False  # and on the same line: a batch split into micro-batches
        self._full = False  # too many calls
        self.fresh = False  # no forward or backward yet in this step, and no generator state to keep
        self.scaled = False  # a GradScaler is in use: infinite gradients are part of how it works
        self._closed = False  # a backward came after these calls
        self._draws = [False, False, False]
        self._compared_steps = 0
        self._compare: tuple[Any, Any, Any] | None = None

    @property
    def calls(self) -> list[Call]:
        """The models' calls, in order."""
        if self.first is not None:
            module, args, version = self.first
            self.first = None
            self._calls.append((module, args, {}))
            self._versions.append((version,))
        return self._calls

    # -- light steps --

    def only_call(self, module: nn.Module, args: tuple[Any, ...], version: int) -> None:
        """The first call of a light step, with one tensor of this version that comes from no computation."""
        self.rng, self.fresh = NO_STATES, False
        self.first = (module, args, version)

    def forward(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        """A model is about to run in a light step."""
        if self._closed:
            self._open()
        if not self.calls:
            self.rng = host_states(*self._draws) if True in self._draws else NO_STATES
        self._append(module, args, kwargs)

    def backward(self, loss: float, line: Line) -> None:
        """`backward()` was called."""
        self.loss = loss
        self.backwards += 1
        self.repeats = self.repeats + 1 if line == self.line else 1
        self.line = line
        self._closed, self.fresh = True, False
        if self.backwards == 2:
            self.accumulates = True
        if self.repeats == 2:
            self._in_parts = True

    def stepped(self) -> None:
        """An optimizer has used the gradients; others may follow in this step."""
        self.backwards = self.repeats = 0

    def clear(self) -> None:
        """The step is over."""
        self.backwards = self.repeats = 0
        self._closed = self._full = False
        self.delivered = None
        self.fresh, self.first = True not in self._draws, None
        if self._calls:
            self._calls, self._versions = [], []

    @property
    def micro_batch(self) -> int | None:
        """Index of this backward among several on one line that belong to a single update."""
        return self.repeats if self._in_parts else None

    def changed(self) -> list[torch.Tensor]:
        """Arguments of the models that have been written to since."""
        found: list[torch.Tensor] = []
        for (_, args, kwargs), before in zip(self.calls, self._versions, strict=True):
            given = data_tensors((*args, *kwargs.values()))
            now = versions_of(given)
            found += [t for t, new, old in zip(given, now, before, strict=False) if new != old]
        return found

    def nonfinite_inputs(self) -> list[str]:
        """Names of the models' arguments that are NaN or infinite and were not computed with gradients."""
        names: dict[str, None] = {}
        for _, args, kwargs in self.calls:
            for number, tensor in enumerate(data_tensors((*args, *kwargs.values()))):
                if tensor.grad_fn is None and is_nonfinite(tensor):
                    names[f"input[{number}]"] = None
        return list(names)

    def _append(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        self.fresh = False
        if len(self.calls) >= MOST_CALLS:
            self._calls, self._versions = [], []
            self._full = True
        if not self._full:
            if has_graph(args) or (kwargs and has_graph(kwargs.values())):
                args = tuple(DERIVED if has_graph((a,)) else a for a in args)
                kwargs = {name: DERIVED if has_graph((a,)) else a for name, a in kwargs.items()}
            self._calls.append((module, args, kwargs))
            self._versions.append(versions_of((*args, *kwargs.values()) if kwargs else args))

    # -- other steps --

    def before_forward(self) -> None:
        """A model is about to run: while learning, save the state of all generators."""
        if self._closed:
            self._open()
        if self.calls:
            return
        learning = self._compared_steps < LEARNING
        self.rng = host_states() if learning else host_states(*self._draws)
        self._compare = self.rng if learning else None
        enabled = torch.is_autocast_enabled("cpu")
        self.autocast = (enabled, torch.get_autocast_dtype("cpu") if enabled else None)

    def after_forward(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        """The model has returned."""
        self._append(module, args, kwargs if isinstance(kwargs, dict) else {})

    def before_backward(self) -> None:
        """Find which generators were used since the first forward."""
        if self._compare is None:
            return
        before, self._compare = self._compare, None
        self._compared_steps += 1
        after = host_states(*[not known for known in self._draws])
        for number, (old, new) in enumerate(zip(before, after, strict=True)):
            if new is not None:
                self._draws[number] = not same_state(old, new)

    def _open(self) -> None:
        self._closed = self._full = False
        self._calls, self._versions, self.first = [], [], None


def has_graph(values: Iterable[Any]) -> bool:
    """Whether one of the values is a tensor that gradients flow through."""
    for value in values:  # not any(): a generator costs more than the loop
        if isinstance(value, torch.Tensor):
            if value.grad_fn is not None:
                return True
        elif isinstance(value, (tuple, list)) and has_graph(value):
            return True
    return False


def versions_of(values: Iterable[Any]) -> Versions:
    """How often each tensor among the values has been written to."""
    return tuple([version_of(tensor) for tensor in data_tensors(tuple(values))])


def version_of(tensor: torch.Tensor) -> int:
    try:
        return tensor._version
    except RuntimeError:  # an inference tensor has no version counter
        return -1


def same_state(old: Any, new: Any) -> bool:
    """Whether a random generator has not been used."""
    if isinstance(old, torch.Tensor):
        return torch.equal(old, new)
    if isinstance(old, tuple) and len(old) == 5:  # numpy's state: a tuple with an array in it
        return bool((old[1] == new[1]).all()) and old[2:] == new[2:]
    return bool(old == new)
