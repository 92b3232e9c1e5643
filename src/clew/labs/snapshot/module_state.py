"""Run somebody's model and leave it as it was: state, modes, hooks, gradients, random numbers.

What a forward may change is put back in three ways. Attributes of modules (a cache, a counter, the
`training` flag) are copied before and restored after, with all containers and arrays in them. Random
number generators are rewound. Values of tensors are copied just before an op writes to them
(`Keeper.before_write`), as only ops can write: so that a model is not copied as a whole for the sake
of its BatchNorm statistics. Of an object that a module holds its attributes and their containers are
put back, not what lies deeper.
"""

from __future__ import annotations

import random
import sys
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import _disable_current_modes

_CONTAINERS = (list, dict, set, OrderedDict)
_SIMPLE = frozenset({bool, int, float, str, type(None)})
_NOTHING: list[tuple[Any, Any]] = []
_DEEPEST = 8  # levels of containers that are looked into
_OTHERS = ("torch", "numpy", "builtins", "enum", "logging", "threading", "_thread")
LARGEST = 2**26  # bytes of an array

Attributes = dict[str, tuple[Any, list[tuple[Any, Any]]]]  # value; what is in it can change: it, and a copy


class Keeper:
    """Copies of tensors from before the first write to them."""

    def __init__(self, tensors: Iterable[Tensor]) -> None:
        self._kept: dict[int, tuple[Tensor, Tensor]] = {}
        self._by_storage: dict[int, list[Tensor]] = {}
        for tensor in tensors:
            key = storage_key(tensor)
            if key is not None:
                self._by_storage.setdefault(key, []).append(tensor)

    def before_write(self, target: Tensor) -> None:
        """An op is about to change this tensor; if it is the model's, remember what it holds."""
        for tensor in self._by_storage.get(storage_key(target) or 0, ()):
            if id(tensor) not in self._kept and tensor.device.type != "meta":
                with _disable_current_modes():  # a copy without values is none
                    self._kept[id(tensor)] = (tensor, tensor.detach().clone())

    def restore(self) -> None:
        with torch.no_grad():
            for tensor, value in self._kept.values():
                tensor.data.copy_(value)
        self._kept.clear()


def storage_key(tensor: Tensor) -> int | None:
    """What two views of the same memory have in common; None for layouts without such."""
    try:
        return int(tensor.untyped_storage()._cdata)
    except (NotImplementedError, RuntimeError):
        return None


def state_of(model: nn.Module) -> list[Tensor]:
    """Parameters and buffers, shared ones once."""
    return [*model.parameters(), *model.buffers()]


@contextmanager
def untouched(model: nn.Module | None, inputs: Iterable[Tensor] = ()) -> Iterator[Keeper]:
    """Whatever happens inside, the model, the inputs and the random numbers are as before."""
    modules = list(model.modules()) if model is not None else []
    state = state_of(model) if model is not None else []
    grads = [(p, p.grad) for p in state]
    saved = [(m, attributes_of(m)) for m in modules]
    loose = [t for _, attributes in saved for t in _tensors_of(attributes)]
    required = [(t, t.requires_grad) for t in (*state, *loose)]
    keeper = Keeper([*state, *loose, *inputs])
    with _random_numbers():
        try:
            yield keeper
        finally:
            for module, attributes in saved:
                _restore(module, attributes)
            for tensor, before in required:
                _require(tensor, before)
            keeper.restore()
            for parameter, grad in grads:
                if parameter.grad is not grad:
                    parameter.grad = grad


def attributes_of(module: nn.Module) -> Attributes:
    """Each as it is, and what the containers and arrays in it hold."""
    return {
        name: (value, _NOTHING if type(value) in _SIMPLE else list(_contents(value)))
        for name, value in module.__dict__.items()
    }


def unchanged(module: nn.Module, attributes: Attributes) -> bool:
    now = module.__dict__
    return len(now) == len(attributes) and all(
        name in now and now[name] is value and all(_same(*content) for content in contents)
        for name, (value, contents) in attributes.items()
    )


def _contents(value: Any, depth: int = 0) -> Iterator[tuple[Any, Any]]:
    if depth > _DEEPEST:
        return
    if type(value) in _CONTAINERS or is_array(value):
        yield value, value.copy()
    elif _is_object(value):
        yield value.__dict__, value.__dict__.copy()
        value, depth = value.__dict__, max(depth, _DEEPEST - 1)  # not into all that it knows
    if isinstance(value, (*_CONTAINERS, tuple)):
        for part in value.values() if isinstance(value, dict) else value:
            if isinstance(part, (*_CONTAINERS, tuple)) or is_array(part) or _is_object(part):
                yield from _contents(part, depth + 1)


def _is_object(value: Any) -> bool:
    """Of a class of the program's or of a library's: a cache, a counter."""
    kind = type(value)
    if isinstance(value, (nn.Module, type)) or not isinstance(getattr(value, "__dict__", None), dict):
        return False
    return kind.__module__.partition(".")[0] not in _OTHERS and not callable(value)


def _tensors_of(attributes: Attributes) -> Iterator[Tensor]:
    """Those that are neither parameters nor buffers: caches and constants."""
    for name, (value, contents) in attributes.items():
        if name not in ("_parameters", "_buffers"):
            held = [value, *(copy for _, copy in contents if not is_array(copy))]
            for one in held:
                parts = one.values() if isinstance(one, dict) else one if isinstance(one, list) else (one,)
                yield from (part for part in parts if isinstance(part, Tensor))


def is_array(value: Any) -> bool:
    """One of numpy's, of numbers; not one so large that it must be data."""
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(value, numpy.ndarray):
        return False
    return not value.dtype.hasobject and value.nbytes <= LARGEST


def _restore(module: nn.Module, attributes: Attributes) -> None:
    for name in [n for n in module.__dict__ if n not in attributes]:
        del module.__dict__[name]
    for name, (value, contents) in attributes.items():
        for content in contents:
            _refill(*content)
        if module.__dict__.get(name, attributes) is not value:
            module.__dict__[name] = value


def _refill(container: Any, content: Any) -> None:
    """The same object with its old content."""
    if _same(container, content):
        return
    if is_array(container):
        container[...] = content
        return
    container.clear()
    container.extend(content) if isinstance(container, list) else container.update(content)


def _same(container: Any, content: Any) -> bool:
    """By identity, as tensors have no plain equality; arrays bit by bit."""
    if is_array(container):
        return bool(container.tobytes() == content.tobytes())
    if not container and not content:
        return True
    if len(container) != len(content) or any(a is not b for a, b in zip(container, content, strict=True)):
        return False
    return not isinstance(container, dict) or all(container[k] is content[k] for k in content)


def _require(tensor: Tensor, before: bool) -> None:
    """A cache that was written to has a graph behind it now; a parameter may have been frozen."""
    if tensor.requires_grad == before:
        return
    if not tensor.is_leaf:
        tensor.detach_()
    if tensor.requires_grad != before:
        tensor.requires_grad_(before)


@contextmanager
def _random_numbers() -> Iterator[None]:
    numpy = sys.modules.get("numpy")
    python, cpu = random.getstate(), torch.get_rng_state()
    numpys = numpy.random.get_state() if numpy is not None else None
    cuda = (
        torch.cuda.get_rng_state_all() if torch.cuda.is_available() and torch.cuda.is_initialized() else None
    )
    try:
        yield
    finally:
        random.setstate(python)
        torch.set_rng_state(cpu)
        if numpy is not None:
            numpy.random.set_state(numpys)
        if cuda is not None:
            torch.cuda.set_rng_state_all(cuda)
