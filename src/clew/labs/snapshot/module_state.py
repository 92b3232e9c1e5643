"""The attributes of an object at one moment: to restore them or to compare them.

For a module (a cache, a counter, the `training` flag) the containers and arrays inside are copied too, at
any depth, and the attributes of the objects in it. For other objects, which may be a dataset of a
million entries, only their own lists and dictionaries.
"""

from __future__ import annotations

import sys
from collections import OrderedDict, deque
from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn

from clew.measure.rng import GENERATORS

CONTAINERS = (list, dict, set, OrderedDict, deque)  # whose contents are restored
_SIMPLE = frozenset({bool, int, float, str, type(None)})
_NOTHING: list[tuple[Any, Any]] = []
_DEEPEST = 8  # levels of containers that are copied
_OTHERS = ("torch", "numpy", "builtins", "enum", "logging", "threading", "_thread")
LARGEST = 2**26  # bytes of an array

Attributes = dict[str, tuple[Any, list[tuple[Any, Any]]]]  # value; if mutable inside: the value, and a copy


class ObjectState:
    """The attributes of one object at one moment."""

    def __init__(self, owner: Any) -> None:
        self._owner = owner
        self._attributes = attributes_of(owner)
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
        return [value for value, _ in self._attributes.values() if isinstance(value, GENERATORS)]

    def plain_tensors(self) -> Iterator[Tensor]:
        """Tensors of a module that are neither parameters nor buffers: caches and constants."""
        for name, (value, contents) in self._attributes.items():
            if name not in ("_parameters", "_buffers"):
                held = [value, *(copy for _, copy in contents if not is_array(copy))]
                for one in held:
                    parts = (
                        one.values() if isinstance(one, dict) else one if isinstance(one, list) else (one,)
                    )
                    yield from (part for part in parts if isinstance(part, Tensor))


def state_of(model: nn.Module) -> list[Tensor]:
    """Parameters and buffers, shared ones once."""
    return [*model.parameters(), *model.buffers()]


def own_tensors(modules: list[nn.Module]) -> list[Tensor]:
    """The same for several modules, without their submodules."""
    found = (t for m in modules for t in (*m._parameters.values(), *m._buffers.values()) if t is not None)
    return list({id(tensor): tensor for tensor in found}.values())


def attributes_of(owner: Any) -> Attributes:
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
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(value, numpy.ndarray):
        return False
    return not value.dtype.hasobject and value.nbytes <= LARGEST


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
