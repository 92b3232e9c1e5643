"""Run somebody's model and leave it as it was: state, modes, hooks, gradients, random numbers.

What a forward may change is put back in three ways. Attributes of modules (a cache, a counter, the
`training` flag) are copied before and restored after. Random number generators are rewound. Values
of tensors are copied just before an op writes to them (`Keeper.before_write`), as only ops can
write: so that a model is not copied as a whole for the sake of its BatchNorm statistics.
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

_CONTAINERS = (list, dict, set, OrderedDict)

Attributes = dict[str, tuple[Any, Any]]


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
    keeper = Keeper([*state, *inputs])
    with _random_numbers():
        try:
            yield keeper
        finally:
            for module, attributes in saved:
                _restore(module, attributes)
            keeper.restore()
            for parameter, grad in grads:
                if parameter.grad is not grad:
                    parameter.grad = grad


def attributes_of(module: nn.Module) -> Attributes:
    """Each as it is, and what a container holds."""
    return {k: (v, v.copy() if type(v) in _CONTAINERS else None) for k, v in module.__dict__.items()}


def unchanged(module: nn.Module, attributes: Attributes) -> bool:
    now = module.__dict__
    return len(now) == len(attributes) and all(
        name in now and now[name] is value and (content is None or _same(value, content))
        for name, (value, content) in attributes.items()
    )


def _restore(module: nn.Module, attributes: Attributes) -> None:
    for name in [n for n in module.__dict__ if n not in attributes]:
        del module.__dict__[name]
    for name, (value, content) in attributes.items():
        if content is not None:
            _refill(value, content)
        if module.__dict__.get(name, attributes) is not value:
            module.__dict__[name] = value


def _refill(container: Any, content: Any) -> None:
    """The same object with its old content."""
    if not _same(container, content):
        container.clear()
        container.extend(content) if isinstance(container, list) else container.update(content)


def _same(container: Any, content: Any) -> bool:
    """By identity, as tensors have no plain equality."""
    if not container and not content:
        return True
    if len(container) != len(content) or any(a is not b for a, b in zip(container, content, strict=True)):
        return False
    return not isinstance(container, dict) or all(container[k] is content[k] for k in content)


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
