"""Which modules are identical: same type, settings and shapes, including all submodules.

A module that contains anything not known to be plain is equal to no other. What its code reads
outside of it (globals, class attributes, default arguments) is part of its identity: two blocks that
share a counter are not identical while it counts.
"""

from __future__ import annotations

import dis
import enum
import logging
import types
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator
from functools import lru_cache, partial
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
_SEQUENCES = (list, tuple)
_SETS = (set, frozenset)
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_OWN = ("_parameters", "_buffers", "_modules", "forward")
# Their callables keep no state that a forward could read: `torch.ops`, ufuncs, cached functions, types.
_WELL_KNOWN = ("torch", "numpy", "functools", "builtins", "typing", "math")
_MANY = 256  # items in a container: more are a data table, which is not read at every call
_READS = ("LOAD_GLOBAL", "LOAD_NAME")

Place = tuple[dict[str, Any], str]  # a namespace and a name in it


class NotPlainError(Exception):
    """This value may contain anything."""


class ForwardStandIn(partial[Any]):
    """Replaces a module's `forward` while repeated layers are detected."""


def plain(value: Any) -> Hashable:
    """Equal for values that no forward can distinguish."""
    kind = type(value)
    if kind in _PLAIN:
        return kind, value
    if isinstance(value, _FIXED):
        return value
    if kind in (*_SEQUENCES, *_SETS, dict, OrderedDict) and len(value) > _MANY:
        raise NotPlainError
    if kind in _SEQUENCES:
        return kind, tuple(map(plain, value))
    if kind in _SETS:
        return kind, frozenset(map(plain, value))
    if kind in (dict, OrderedDict):
        return kind, tuple((plain(k), plain(v)) for k, v in value.items())
    raise NotPlainError


class Kinds:
    """A number for each kind of module, in its current state."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}

    def of(self, module: nn.Module) -> Hashable | None:
        """None for a module that is equal to no other."""
        try:
            number = self._number(module, set())
        except NotPlainError:
            return None
        return (
            number,
            first_places(map(id, modules_below(module))),
            first_places(map(id, state_below(module))),
        )

    def _number(self, module: nn.Module, above: set[int]) -> int:
        if id(module) in above:  # it contains itself
            raise NotPlainError
        return self._numbers.setdefault(self._described(module, above | {id(module)}), len(self._numbers))

    def _described(self, module: nn.Module, above: set[int]) -> Hashable:
        held: dict[str, Any] = module.__dict__
        kind: Any = type(module)
        if type(held.get("forward")) not in (type(None), ForwardStandIn) or any(held.get(h) for h in _HOOKS):
            raise NotPlainError
        below = tuple(
            (name, -1 if child is None else self._number(child, above))
            for name, child in module._modules.items()
        )
        state = tuple(
            (name, None if tensor is None else _shape(tensor))
            for place in (module._parameters, module._buffers)
            for name, tensor in place.items()
        )
        others = tuple(
            (name, plain(value))
            for name, value in held.items()
            if name not in _OWN and (type(value) is not OrderedDict or value)
        )
        return kind, below, state, others, tuple(_now(*place) for place in surroundings(kind))


def _shape(tensor: Tensor) -> Hashable:
    return (
        tuple(tensor.shape),
        tensor.stride(),
        tensor.dtype,
        tensor.device,
        tensor.requires_grad,
    )


def first_places(keys: Iterable[Any]) -> tuple[int, ...]:
    """For each key, where it first occurs: shows which of them are equal."""
    first: dict[Any, int] = {}
    return tuple(first.setdefault(key, n) for n, key in enumerate(keys))


def modules_below(module: nn.Module) -> list[nn.Module]:
    """The module and all its submodules, in order; a shared one at each of its places."""
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


# -- what code reads outside of itself --


def _now(namespace: Any, name: str) -> Hashable:
    """The current value of a name there."""
    if name not in namespace:
        return None
    value = namespace[name]
    known = type(value).__module__.partition(".")[0] in _WELL_KNOWN
    if callable(value) and known and not isinstance(value, nn.Module):
        return value if isinstance(value, Hashable) else id(value)
    return plain(value)


@lru_cache(maxsize=1024)
def surroundings(kind: Any) -> tuple[Place, ...]:
    """Everything that the methods of a class can read besides their arguments: where to read it."""
    home = kind.__module__.partition(".")[0]
    found: list[Place] = []
    waiting: list[types.FunctionType] = []
    for one in kind.__mro__:
        if one.__module__.partition(".")[0] in ("torch", "builtins"):
            continue
        for name, value in list(vars(one).items()):
            functions = list(_functions_in(value))
            waiting += functions
            if not functions and not name.startswith("__"):
                found.append((vars(one), name))
    known = set()
    for function in waiting:  # which grows
        if id(function) in known:
            continue
        known.add(id(function))
        for namespace, name in _read_by(function):
            found.append((namespace, name))
            for inner in _functions_in(namespace.get(name)):
                if (inner.__module__ or "").partition(".")[0] == home:
                    waiting.append(inner)
    return tuple(found)


def _functions_in(value: Any) -> Iterator[types.FunctionType]:
    """A function, method or property, and the function it wraps."""
    parts = (value.fget, value.fset) if isinstance(value, property) else (getattr(value, "__func__", value),)
    for part in parts:
        if isinstance(part, types.FunctionType):
            yield part


def _read_by(function: types.FunctionType) -> Iterator[Place]:
    for name in names_read(function.__code__):
        if name in function.__globals__:
            yield function.__globals__, name
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        if name != "__class__":
            yield {name: _content(cell)}, name
    for number, value in enumerate(function.__defaults__ or ()):
        yield {str(number): value}, str(number)
    for name, value in (function.__kwdefaults__ or {}).items():
        yield {name: value}, name


def names_read(code: types.CodeType) -> set[str]:
    """Globals that it reads, including in nested lambdas and comprehensions."""
    found = {str(i.argval) for i in dis.get_instructions(code) if i.opname in _READS}
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= names_read(constant)
    return found


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None
