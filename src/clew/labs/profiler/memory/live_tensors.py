"""The tensors alive between two steps: parameters, gradients, optimizer state, and the rest."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from clew.hooks.collect_layers.trained_models import ModelBook, unwrap
from clew.hooks.collect_loop.optimizers import OptimizerBook

STAND_INS = "torch._subclasses"  # a compiler's tensors without memory; asked for an address, they warn
MOST_OBJECTS = 5_000_000  # of the garbage collector's that are looked through


@dataclass(frozen=True)
class LiveTensor:
    """A storage: its size, what it is, and the module that it belongs to."""

    size: int
    kind: str  # one of costs.KINDS
    root: str = ""
    module: str = ""


@dataclass
class Holdings:
    """By the address of the storage; what is shared counts once."""

    device: str = "cpu"
    held: dict[int, LiveTensor] = field(default_factory=dict)

    def add(self, tensor: Any, kind: str, root: str = "", module: str = "") -> None:
        """Note a tensor's storage, unless it is known or lives elsewhere."""
        if type(tensor).__module__.startswith(STAND_INS):
            return
        try:
            if tensor.device.type != self.device:
                return
            storage = tensor.untyped_storage()
            address, size = storage.data_ptr(), storage.nbytes()
        except (RuntimeError, NotImplementedError, TypeError, AttributeError):
            return  # without storage: one of a transform
        if address and size:
            self.held.setdefault(address, LiveTensor(size, kind, root, module))

    def kind_of(self, address: int) -> str:
        known = self.held.get(address)
        return known.kind if known is not None else ""


def holdings(models: ModelBook, optimizers: OptimizerBook, everything: bool = False) -> Holdings:
    """What is held now; with `everything` also the tensors that nobody has a name for."""
    with torch._C.DisableTorchFunction():  # a subclass of Tensor may do anything when it is asked
        return _holdings(models, optimizers, everything)


def _holdings(models: ModelBook, optimizers: OptimizerBook, everything: bool) -> Holdings:
    found = Holdings(_device(models))
    for root, path, tensor in _parameters(models):
        found.add(tensor, "parameters", root, path)
        if tensor.grad is not None:
            found.add(tensor.grad, "gradients", root, path)
    for state in optimizers.states:
        optimizer = state.optimizer()
        if optimizer is not None:
            _add_state(found, optimizer, models)
    if everything:
        for tensor in live_tensors():
            found.add(tensor, "other")
    return found


def live_tensors() -> list[Tensor]:
    """Every tensor that the garbage collector knows; no attribute of any object is asked for."""
    objects = gc.get_objects()
    if len(objects) > MOST_OBJECTS:
        return []
    kinds: dict[type, bool] = {}
    found = []
    for one in objects:
        kind = type(one)
        is_tensor = kinds.get(kind)
        if is_tensor is None:
            is_tensor = kinds[kind] = Tensor in kind.__mro__
        if is_tensor:
            found.append(one)
    return found


def _parameters(models: ModelBook) -> Iterator[tuple[str, str, Tensor]]:
    """And buffers, with the root and the module that have them."""
    for root in models.roots:
        outer = root.module()
        if outer is None:
            continue
        for path, module in unwrap(outer).named_modules():
            for tensor in (*module._parameters.values(), *module._buffers.values()):
                if tensor is not None:
                    yield root.name, path, tensor


def _device(models: ModelBook) -> str:
    return next((tensor.device.type for *_, tensor in _parameters(models)), "cpu")


def _add_state(found: Holdings, optimizer: Optimizer, models: ModelBook) -> None:
    for parameter, state in list(optimizer.state.items()):
        named = models.name_of(parameter) if isinstance(parameter, Tensor) else None
        root, module = (named.root or "", named.module or "") if named is not None else ("", "")
        for value in list(state.values()) if isinstance(state, dict) else ():
            if isinstance(value, Tensor):
                found.add(value, "optimizer state", root, module)
