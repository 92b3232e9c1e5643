"""State that no `state_dict` contains: tensors and arrays in plain attributes, and the user's generators.

Running a step changes them in place, so keeping a reference to the attribute is not enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from clew.hooks.entry.user_line import USER, kind_of
from clew.measure.rng import GENERATORS, generator_state, set_generator_state

LARGEST = 2**24  # most elements of a tensor that is copied; more is data, not state


@dataclass(frozen=True)
class Saved:
    """One piece of state: its name, how to read it, and its value."""

    name: str
    generator: bool
    now: Callable[[], Any]
    put: Callable[[Any], object]
    value: Any

    @property
    def changed(self) -> bool:
        return not _equal(self.now(), self.value)


@dataclass(frozen=True)
class PlainState:
    """The plain state of some objects at one moment."""

    saved: tuple[Saved, ...]

    @classmethod
    def take(cls, owners: Iterable[Any]) -> PlainState:
        found: dict[int, Saved] = {}
        for owner in owners:
            for name, value in _reachable(owner):
                if id(value) not in found and (piece := _piece(name, value)) is not None:
                    found[id(value)] = piece
        return cls(tuple(found.values()))

    def put(self) -> None:
        """Restore what has changed; also restores a tensor's version counter if only that has changed."""
        for piece in self.saved:
            if piece.changed or isinstance(piece.value, Tensor):
                piece.put(piece.value)

    def changed(self) -> list[Saved]:
        return [piece for piece in self.saved if piece.changed]


def _reachable(owner: Any) -> Iterator[tuple[str, Any]]:
    """Attributes, the contents of their lists and dictionaries, and the generators of the defining module."""
    for name, value in list(vars(owner).items()):
        if isinstance(owner, nn.Module) and name in ("_parameters", "_buffers", "_modules"):
            continue
        yield name, value
        if type(value) in (list, tuple, dict):
            parts = value.values() if isinstance(value, dict) else value
            yield from ((name, part) for part in list(parts))
    code = getattr(getattr(type(owner), "forward", None), "__code__", None)
    if code is not None and kind_of(code.co_filename) == USER:
        scope = type(owner).forward.__globals__
        yield from ((n, scope[n]) for n in code.co_names if n in scope and isinstance(scope[n], GENERATORS))


def _piece(name: str, value: Any) -> Saved | None:
    if isinstance(value, GENERATORS):
        return Saved(
            name,
            True,
            lambda: generator_state(value),
            lambda state: set_generator_state(value, state),
            generator_state(value),
        )
    if isinstance(value, np.ndarray) and value.size <= LARGEST and value.dtype != object:
        return Saved(name, False, lambda: value, lambda v: np.copyto(value, v), value.copy())
    if type(value) is Tensor and _is_state(value):
        return Saved(name, False, lambda: value, _writer(value), value.detach().clone())
    return None


def _is_state(tensor: Tensor) -> bool:
    plain = tensor.layout is torch.strided and not tensor.is_meta and not tensor.is_inference()
    return plain and tensor.grad_fn is None and tensor.numel() <= LARGEST


def _writer(tensor: Tensor) -> Callable[[Tensor], None]:
    """Values and the version counter, on which one of the user's graphs may depend."""
    version = tensor._version

    def write(values: Tensor) -> None:
        if tensor.shape != values.shape:
            return
        if not torch.equal(tensor.detach(), values):
            with torch.no_grad():
                tensor.detach().copy_(values)
        torch._C._autograd._unsafe_set_version_counter((tensor,), (version,))

    return write


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, Tensor):
        return one.shape == other.shape and torch.equal(one.detach(), other)
    if isinstance(one, np.ndarray):
        return bool(np.array_equal(one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_equal(v, other[k]) for k, v in one.items())
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(_equal, one, other))
    return bool(one == other)
