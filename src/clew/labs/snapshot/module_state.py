"""State that no `state_dict` contains: attributes of objects, tensors and arrays in them, generators.

`ObjectState` is the attributes of an object at one moment, to restore them or to compare them. For a module
(a cache, a counter, the `training` flag) the containers and arrays inside are copied too, at any depth, and
the attributes of the objects in it. For other objects, which may be a dataset of a million entries, only
their own lists and dictionaries.

`PlainState` is the contents of tensors and arrays in plain attributes. Running a step changes them in
place, so keeping a reference to the attribute is not enough.
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from clew.hooks.entry.user_line import USER, kind_of
from clew.measure.rng import GENERATORS, generator_state, keep_generators, set_generator_state

CONTAINERS = (list, dict, set, OrderedDict, deque)  # whose contents are restored
_SIMPLE = frozenset({bool, int, float, str, type(None)})
_NOTHING: list[tuple[Any, Any]] = []
_DEEPEST = 8  # levels of containers that are copied
MOST_ITEMS = 16  # of a list that are searched for generators
_OTHERS = ("torch", "numpy", "builtins", "enum", "logging", "threading", "_thread")
LARGEST = 2**26  # bytes of an array
MOST_ELEMENTS = 2**24  # of a tensor or array that is copied; more is data, not state

Attributes = dict[str, tuple[Any, list[tuple[Any, Any]]]]  # value; if mutable inside: the value, and a copy


class ObjectState:
    """The attributes of one object at one moment."""

    def __init__(self, owner: Any) -> None:
        self._owner = owner
        self._attributes = _attributes_of(owner)
        self.is_module = isinstance(owner, nn.Module)

    def restore(self) -> None:
        """Restore the attributes and the contents of their containers."""
        now = vars(self._owner)
        for name in [n for n in now if n not in self._attributes]:
            del now[name]
        for name, (value, contents) in self._attributes.items():
            for content in contents:
                _refill(*content)
            if now.get(name, self) is not value:
                now[name] = value

    def unchanged(self) -> bool:
        now = vars(self._owner)
        return len(now) == len(self._attributes) and all(
            name in now and now[name] is value and all(_same(*content) for content in contents)
            for name, (value, contents) in self._attributes.items()
        )

    def generators(self) -> list[Any]:
        """The object's own random generators."""
        return own_generators(self._owner)

    def plain_tensors(self) -> Iterator[Tensor]:
        """Tensors of a module that are neither parameters nor buffers: caches and constants."""
        for name, (value, contents) in self._attributes.items():
            if name not in ("_parameters", "_buffers"):
                values = [value, *(copy for _, copy in contents if not is_array(copy))]
                for one in values:
                    inside = one.values() if isinstance(one, dict) else one
                    parts = inside if isinstance(one, (dict, list)) else (one,)
                    yield from (part for part in parts if isinstance(part, Tensor))


def own_generators(owner: Any) -> list[Any]:
    """The random generators in an object's attributes, and in lists and tuples there."""
    values = list(vars(owner).values())
    parts = (value[:MOST_ITEMS] if isinstance(value, (list, tuple)) else (value,) for value in values)
    return [part for row in parts for part in row if isinstance(part, GENERATORS)]


@contextlib.contextmanager
def keep_loader_generators(loader: Any) -> Iterator[None]:
    """Restore the state of the generators that a loader and its samplers use."""
    owners = [loader, *(getattr(loader, name, None) for name in ("sampler", "batch_sampler"))]
    owners.append(getattr(owners[-1], "sampler", None))
    found = [getattr(owner, "generator", None) for owner in owners]
    with keep_generators([generator for generator in found if isinstance(generator, torch.Generator)]):
        yield


def state_of(model: nn.Module) -> list[Tensor]:
    """Parameters and buffers, shared ones once."""
    return [*model.parameters(), *model.buffers()]


def own_tensors(modules: list[nn.Module]) -> list[Tensor]:
    """The same for several modules, without their submodules."""
    found = (t for m in modules for t in (*m._parameters.values(), *m._buffers.values()) if t is not None)
    return list({id(tensor): tensor for tensor in found}.values())


def _attributes_of(owner: Any) -> Attributes:
    """Each attribute, and the contents of its containers and arrays."""
    contents = _contents if isinstance(owner, nn.Module) else _own_contents
    return {
        name: (value, _NOTHING if type(value) in _SIMPLE else list(contents(value)))
        for name, value in vars(owner).items()
    }


def _own_contents(value: Any) -> Iterator[tuple[Any, Any]]:
    if type(value) in CONTAINERS:
        yield value, value.copy()


def _contents(value: Any, depth: int = 0) -> Iterator[tuple[Any, Any]]:
    if depth > _DEEPEST:
        return
    if type(value) in CONTAINERS or is_array(value):
        yield value, value.copy()
    elif _is_object(value):
        yield value.__dict__, value.__dict__.copy()
        value, depth = value.__dict__, max(depth, _DEEPEST - 1)  # not everything it references
    if isinstance(value, (*CONTAINERS, tuple)):
        for part in value.values() if isinstance(value, dict) else value:
            if isinstance(part, (*CONTAINERS, tuple)) or is_array(part) or _is_object(part):
                yield from _contents(part, depth + 1)


def _is_object(value: Any) -> bool:
    """An instance of a class of the program or of a library: a cache, a counter."""
    kind = type(value)
    if isinstance(value, (nn.Module, type)) or not isinstance(getattr(value, "__dict__", None), dict):
        return False
    return kind.__module__.partition(".")[0] not in _OTHERS and not callable(value)


def is_array(value: Any) -> bool:
    """A numeric numpy array that is not so large that it must be data."""
    return isinstance(value, np.ndarray) and not value.dtype.hasobject and value.nbytes <= LARGEST


def _refill(container: Any, content: Any) -> None:
    """The same object with its old contents."""
    if _same(container, content):
        return
    if is_array(container):
        container[...] = content
        return
    container.clear()
    container.extend(content) if isinstance(container, (list, deque)) else container.update(content)


def _same(container: Any, content: Any) -> bool:
    """Compared by identity, since tensors have no plain equality; arrays bitwise."""
    if is_array(container):
        return bool(container.tobytes() == content.tobytes())
    if not container and not content:
        return True
    if len(container) != len(content) or any(a is not b for a, b in zip(container, content, strict=True)):
        return False
    return not isinstance(container, dict) or all(container[k] is content[k] for k in content)


@dataclass(frozen=True)
class StatePiece:
    """One piece of state: its name, how to read it, and its value."""

    name: str
    generator: bool
    now: Callable[[], Any]
    put: Callable[[Any], object]
    value: Any  # when it was saved

    @property
    def changed(self) -> bool:
        return not _equal(self.now(), self.value)


@dataclass(frozen=True)
class PlainState:
    """The plain state of some objects at one moment."""

    saved: tuple[StatePiece, ...]

    @classmethod
    def take(cls, owners: Iterable[Any]) -> PlainState:
        found: dict[int, StatePiece] = {}
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

    def changed(self) -> list[StatePiece]:
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


def _piece(name: str, value: Any) -> StatePiece | None:
    if isinstance(value, GENERATORS):
        return StatePiece(
            name,
            True,
            lambda: generator_state(value),
            lambda state: set_generator_state(value, state),
            generator_state(value),
        )
    if isinstance(value, np.ndarray) and value.size <= MOST_ELEMENTS and value.dtype != object:
        return StatePiece(name, False, lambda: value, lambda v: np.copyto(value, v), value.copy())
    if type(value) is Tensor and _is_state(value):
        return StatePiece(name, False, lambda: value, _writer(value), value.detach().clone())
    return None


def _is_state(tensor: Tensor) -> bool:
    plain = tensor.layout is torch.strided and not tensor.is_meta and not tensor.is_inference()
    return plain and tensor.grad_fn is None and tensor.numel() <= MOST_ELEMENTS


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
