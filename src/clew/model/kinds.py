"""Which modules are alike: same type, settings and shapes, all the way down.

A module that holds anything which is not known to be plain is like no other.
"""

from __future__ import annotations

import enum
import logging
import types
from collections import OrderedDict
from collections.abc import Hashable, Iterator
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn

_PLAIN = (bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device, torch.Size)
_FIXED = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.ModuleType,
    type,
    enum.Enum,
    logging.Logger,
)
_CHANGING = (list, set, dict)
_MANY = (list, tuple, set, frozenset)
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_OWN = ("_parameters", "_buffers", "_modules")


class NotPlainError(Exception):
    """This value may hold anything."""


def plain(value: Any) -> Hashable:
    """Equal for values that no forward can tell apart."""
    kind = type(value)
    if kind in _PLAIN:
        return kind, value
    if isinstance(value, _FIXED):
        return value
    if kind in _MANY:
        return kind, tuple(map(plain, value))
    if kind in (dict, OrderedDict):
        return kind, tuple((plain(k), plain(v)) for k, v in value.items())
    raise NotPlainError


class Kinds:
    """A number for each kind of module."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._known: dict[int, int | None] = {}

    def of(self, module: nn.Module) -> Hashable | None:
        """None for one that is like no other."""
        number = self._number(module)
        if number is None:
            return None
        return number, _places(modules_below(module)), _places(state_below(module))

    def _number(self, module: nn.Module) -> int | None:
        if id(module) not in self._known:
            self._known[id(module)] = None  # should it hold itself
            try:
                description = self._described(module)
            except NotPlainError:
                return None
            self._known[id(module)] = self._numbers.setdefault(description, len(self._numbers))
        return self._known[id(module)]

    def _described(self, module: nn.Module) -> Hashable:
        held: dict[str, Any] = module.__dict__
        kind: Any = type(module)
        if "forward" in held or any(held.get(h) for h in _HOOKS) or not self_contained(kind):
            raise NotPlainError
        below = []
        for name, child in module._modules.items():
            number = self._number(child) if child is not None else -1
            if number is None:
                raise NotPlainError
            below.append((name, number))
        state = [
            (name, None if tensor is None else _shape(tensor))
            for place in (module._parameters, module._buffers)
            for name, tensor in place.items()
        ]
        others = [
            (n, plain(v)) for n, v in held.items() if n not in _OWN and (v or type(v) is not OrderedDict)
        ]
        return kind, tuple(below), tuple(state), tuple(others)


def _shape(tensor: Tensor) -> Hashable:
    return (
        tuple(tensor.shape),
        tensor.stride(),
        tensor.dtype,
        tensor.device,
        tensor.requires_grad,
    )


def _places(things: list[Any]) -> tuple[int, ...]:
    """For each where it stands first: which are the same object."""
    first: dict[int, int] = {}
    return tuple(first.setdefault(id(thing), n) for n, thing in enumerate(things))


def modules_below(module: nn.Module) -> list[nn.Module]:
    """Itself and all inside, in order; one that stands at two places twice."""
    return [m for _, m in module.named_modules(remove_duplicate=False)]


def state_below(module: nn.Module) -> list[Tensor]:
    """Parameters and buffers, in order; shared ones at each place."""
    return [
        tensor
        for one in modules_below(module)
        for place in (one._parameters, one._buffers)
        for tensor in place.values()
        if tensor is not None
    ]


@lru_cache(maxsize=1024)
def self_contained(kind: Any) -> bool:
    """Whether it shares nothing that can change: a list of the program's or of the class, an object."""
    for one in own_classes(kind):
        for name, value in vars(one).items():
            function = getattr(value, "__func__", value)
            if isinstance(function, types.FunctionType):
                if not all(map(_fixed, _outside(function))):
                    return False
            elif isinstance(value, _CHANGING) and not name.startswith("__"):
                return False
    return True


def own_classes(kind: Any) -> list[Any]:
    """The program's own, of those that a class is made of."""
    return [one for one in kind.__mro__ if one.__module__.partition(".")[0] not in ("torch", "builtins")]


def _outside(function: types.FunctionType) -> Iterator[Any]:
    codes = [function.__code__]
    for code in codes:  # which grows: a comprehension or lambda inside has names of its own
        codes += [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
        for name in code.co_names:
            if name in function.__globals__:
                yield function.__globals__[name]
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not filled yet
            yield None


def _fixed(value: Any) -> bool:
    if callable(value) and not isinstance(value, nn.Module):
        return True
    try:
        plain(value)
    except NotPlainError:
        return False
    return not isinstance(value, _CHANGING)
