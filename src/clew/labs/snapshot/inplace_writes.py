"""In-place writes: which arguments an op writes to, and a journal that undoes the writes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import _disable_current_modes

from clew.measure.nested_tensors import tensors_in

_OVERWRITING = {"copy_", "fill_", "zero_", "normal_", "uniform_", "bernoulli_", "random_", "exponential_"}

_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}  # by bytes of an element


@lru_cache(maxsize=4096)
def writes_of(func: Any) -> tuple[tuple[int, str], ...]:
    """Position and name of the arguments that an op writes to."""
    schema = getattr(func, "_schema", None)
    if schema is None:
        return ()
    unsaid = ("running_mean", "running_var") if "batch_norm" in schema.name else ()  # not in their schemas
    return tuple(
        (number, argument.name)
        for number, argument in enumerate(schema.arguments)
        if (argument.alias_info is not None and argument.alias_info.is_write) or argument.name in unsaid
    )


def written(func: Any, args: Any, kwargs: dict[str, Any]) -> list[Tensor]:
    """The tensors that a call of an op writes to."""
    places = writes_of(func)
    return (
        tensors_in([args[n] if n < len(args) else kwargs.get(name) for n, name in places]) if places else []
    )


def overwrites(func: Any) -> bool:
    """Whether the written argument is not read: it may be uninitialised memory."""
    return func._schema.name[6:] in _OVERWRITING or "out" in func._overloadname


def storage_key(tensor: Tensor) -> int | None:
    """A key that all views of the same memory share; None for layouts without a storage."""
    try:
        return int(tensor.untyped_storage()._cdata)
    except (NotImplementedError, RuntimeError):
        return None


def memory_key(tensor: Tensor) -> int:
    """A key that identifies one piece of memory; a tensor without a storage is its own."""
    return storage_key(tensor) or -id(tensor)


class WriteJournal:
    """The contents of tensors before they were written to.

    Only ops can write, so an op recorder that reports each write avoids copying a whole model for the
    sake of its BatchNorm statistics. `known` are the tensors for which `before_write` does something.
    """

    def __init__(self, known: Iterable[Tensor] = ()) -> None:
        self._before: dict[int, tuple[Tensor, Tensor, int | None]] = {}
        self._by_storage: dict[int, list[Tensor]] = {}
        for tensor in known:
            key = storage_key(tensor)
            if key is not None:
                self._by_storage.setdefault(key, []).append(tensor)

    def before_write(self, target: Tensor) -> None:
        """An op is about to change this tensor: copy the known tensors in the same memory."""
        for tensor in self._by_storage.get(storage_key(target) or 0, ()):
            self.copy(tensor)

    def note(self, target: Tensor) -> None:
        """The same for any tensor: copies its whole storage."""
        base = target if target._base is None else target._base
        if not base.is_inference():
            self.copy(base)

    def copy(self, tensor: Tensor) -> None:
        """Save its current contents, if this is the first time."""
        if id(tensor) in self._before or tensor.device.type == "meta":
            return
        with _disable_current_modes():  # nothing to copy without values
            version = None if tensor.is_inference() else tensor._version
            self._before[id(tensor)] = (tensor, tensor.detach().clone(), version)

    def undo(self) -> None:
        """Restore everything, including version counters: one of the user's graphs may depend on them."""
        for tensor, values, version in self._before.values():
            if not same_values(tensor, values):
                _write(tensor, values)
            if version is not None:
                torch._C._autograd._unsafe_set_version_counter((tensor,), (version,))
        self._before.clear()


def same_values(tensor: Tensor, values: Tensor) -> bool:
    """Bitwise comparison where possible: unchanged memory is not written to, as it may be read-only."""
    if tensor.shape != values.shape or tensor.dtype != values.dtype:
        return False
    if type(tensor) not in (Tensor, nn.Parameter) or tensor.layout is not torch.strided:
        return False
    if not tensor.is_floating_point() and not tensor.is_complex():
        return torch.equal(tensor.detach(), values)
    bits = _BITS.get(tensor.element_size())  # as numbers, 0.0 and -0.0 would be the same, and NaN would not
    if bits is None or tensor.is_neg() or tensor.is_conj():
        return False
    return torch.equal(tensor.detach().view(bits), values.view(bits))


def _write(tensor: Tensor, values: Tensor) -> None:
    inference = torch.inference_mode() if tensor.is_inference() else contextlib.nullcontext()
    with torch.no_grad(), inference:
        tensor.detach().copy_(values)
