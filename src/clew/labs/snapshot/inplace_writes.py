"""In-place writes of a replay: noticed before they happen, and undone after it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

# They write running statistics, and their schema does not say so.
_SECRETLY = {"aten::native_batch_norm", "aten::cudnn_batch_norm", "aten::miopen_batch_norm"}
_positions: dict[Any, tuple[tuple[int, str], ...]] = {}


def written(func: Any, args: Any, kwargs: dict[str, Any]) -> list[Tensor]:
    """The arguments that an operation writes to."""
    places = _positions.get(func)
    if places is None:
        places = _positions[func] = tuple(
            (position, argument.name)
            for position, argument in enumerate(func._schema.arguments)
            if argument.alias_info is not None and argument.alias_info.is_write
        )
        if func._schema.name in _SECRETLY:
            places = _positions[func] = ((3, "running_mean"), (4, "running_var"))
    found: list[Any] = []
    for position, name in places:
        value = args[position] if position < len(args) else kwargs.get(name)
        found += value if isinstance(value, (list, tuple)) else [value]
    return [t for t in found if isinstance(t, Tensor)]


_OVERWRITING = {"copy_", "fill_", "zero_", "normal_", "uniform_", "bernoulli_", "random_", "exponential_"}


def overwrites(func: Any) -> bool:
    """Whether what is written to is not read: it may be memory that was never set."""
    return func._schema.name[6:] in _OVERWRITING or "out" in func._overloadname


class Journal:
    """What tensors from outside held before a replay wrote to them."""

    def __init__(self) -> None:
        self._before: dict[int, tuple[Tensor, Tensor, int]] = {}

    def note(self, tensor: Tensor) -> None:
        """Called before the first write to a tensor."""
        base = tensor if tensor._base is None else tensor._base
        if id(base) not in self._before and not base.is_inference():
            self._before[id(base)] = (base, base.detach().clone(), base._version)

    def undo(self) -> None:
        """Everything as it was, the version counters too: a graph of the user's may depend on them."""
        for base, values, version in self._before.values():
            with torch.no_grad():
                base.detach().copy_(values)
            torch._C._autograd._unsafe_set_version_counter((base,), (version,))
        self._before.clear()
