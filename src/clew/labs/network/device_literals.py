"""Finds tensors that stay on the CPU when the model moves; uses the meta device, so no GPU is needed.

All of the model's state and its inputs are moved there; what `torch.arange(n)` then creates, or a module
has as a plain attribute, is on the CPU. Every such tensor is traced to where an op combines it with
the others, which fails on a GPU. CPU tensors that only meet each other (sizes, lists, indices) do
no harm.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from clew.hooks.entry.user_line import user_line
from clew.labs.network.network_inputs import ForwardInputs
from clew.labs.network.trace.op_tracer import ForwardTrace, Op
from clew.labs.network.visitor import aten_name
from clew.labs.snapshot.inplace_writes import WriteJournal, storage_key
from clew.labs.snapshot.module_state import state_of
from clew.labs.snapshot.op_recorder import ModulePaths, OpCall, OpRecorder
from clew.labs.snapshot.snapshot import network_snapshot
from clew.labs.snapshot.time_limit import first_line
from clew.measure.nested_tensors import map_tensors, tensors_in
from clew.records.facts.network_experiment_facts import CpuTensor

# Ops that accept tensors of two devices on a GPU too: indices and lengths may be on the CPU.
_MAY_MIX = {
    "index",
    "index_put",
    "unsafe_index",
    "unsafe_index_put",
    "copy",
    "to_copy",
    "pack_padded_sequence",
    "ctc_loss",
    "tensor_split",
}
_HOLDERS = (list, tuple, dict)


class CannotTrace(Exception):  # noqa: N818 - reads as what it is
    """The forward can't be traced on the meta device; the message says why."""


def may_stay_on_cpu(model: nn.Module, trace: ForwardTrace) -> bool:
    """Whether any tensor could stay on the CPU: if not, there is nothing to test."""
    return any(map(_creates, trace.ops)) or any(True for _ in _held(model))


def _creates(op: Op) -> bool:
    """Whether an op creates a tensor of several numbers from nothing, or from Python numbers."""
    fresh = not op.inputs or aten_name(op.function) == "lift_fresh"
    return fresh and any(t.shape and t.bytes for t in op.outputs)


def device_literal(model: nn.Module, given: ForwardInputs, root: str) -> CpuTensor | None:
    """The first tensor that met tensors of another device; raises CannotTrace if that is undecided."""
    held = list(_held(model))
    inputs = tensors_in((given.args, given.kwargs))
    followed = _CpuTensors(held)
    error: Exception | None = None
    with ExitStack() as stack:
        journal = stack.enter_context(network_snapshot(model, [*inputs, *(t for t, _ in held)]))
        try:
            args, kwargs = _moved(model, given)
            if any(t.device.type != "meta" for t in tensors_in((args, kwargs))):
                raise CannotTrace("its inputs contain tensors that can't be moved")
            stack.enter_context(_CreationRecorder(model, followed, journal))
            stack.enter_context(_CallTracker(followed))
            model(*args, **kwargs)
        except CannotTrace:
            raise
        except Exception as failure:  # noqa: BLE001 - the user's code on a device it was not written for
            error = failure
    if followed.found is None and error is not None:
        raise CannotTrace(f"it can't be run on the meta device: {first_line(error)[:120]}")
    return None if followed.found is None else replace(followed.found, root=root)


class _CpuTensors:
    """The tensors that stay on the CPU, by their memory, and the first that met others."""

    def __init__(self, held: list[tuple[Tensor, CpuTensor]]) -> None:
        self.found: CpuTensor | None = None
        self.modules: list[str] = []
        self.calling: list[str] = []
        self._known = {storage_key(t): origin for t, origin in held}
        self._alive: list[Tensor] = []  # so that no address is reused

    def note(self, tensor: Tensor, origin: CpuTensor) -> None:
        self._known.setdefault(storage_key(tensor), origin)
        self._alive.append(tensor)

    def of(self, tensor: Tensor) -> CpuTensor | None:
        return self._known.get(storage_key(tensor)) if _counts(tensor) else None

    def meeting(self, name: str, read: list[Tensor]) -> None:
        """Tensors enter one op: a fault if a CPU tensor meets the model's."""
        elsewhere = any(t.device.type == "meta" and t.dim() for t in read)
        if self.found is None and elsewhere and name not in _MAY_MIX:
            self.found = next((known for t in read if (known := self.of(t)) is not None), None)


class _CreationRecorder(OpRecorder):
    """Records what is created on the CPU, and what it meets."""

    def __init__(self, model: nn.Module, followed: _CpuTensors, journal: WriteJournal) -> None:
        super().__init__(journal.before_write)
        self._paths = ModulePaths({"": model})
        self._followed = followed

    def before_op(self, op: OpCall) -> None:
        self._followed.meeting(aten_name(op.func), op.inputs)

    def after_op(self, op: OpCall) -> None:
        for tensor in op.outputs:
            if _counts(tensor):
                self._note(tensor, aten_name(op.func), op.inputs)

    def _module(self) -> str:
        """The path of the running module; for one outside the model, its class."""
        if not self.modules:
            return ""
        path = self._paths.of(self.modules[-1])[1]
        return type(self.modules[-1]).__name__ if path is None else path

    def _note(self, tensor: Tensor, name: str, read: list[Tensor]) -> None:
        """Created from a tensor that is already tracked, or from nothing."""
        followed = self._followed
        source = next((known for t in read if (known := followed.of(t)) is not None), None)
        if source is None and (not read or name == "lift_fresh"):
            file, line = user_line()
            op = followed.calling[-1] if followed.calling else "tensor" if name == "lift_fresh" else name
            source = CpuTensor(op, None, self._module(), file, line)
        if source is not None:
            followed.note(tensor, source)


class _CallTracker(TorchFunctionMode):
    """Knows the function being called, and checks its arguments if it rejects them itself."""

    def __init__(self, followed: _CpuTensors) -> None:
        super().__init__()
        self._followed = followed

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        followed = self._followed
        followed.calling.append(str(getattr(func, "__name__", func)).strip("_"))
        try:
            return func(*args, **(kwargs or {}))
        except RuntimeError as error:
            if "device" in str(error):
                followed.meeting(followed.calling[-1], [*tensors_in((args, kwargs or {}))])
            raise
        finally:
            followed.calling.pop()


def _moved(model: nn.Module, given: ForwardInputs) -> tuple[Any, Any]:
    """The model's state in place (the snapshot restores it) and the inputs, on the meta device."""
    known: dict[int, tuple[Tensor, Tensor]] = {}

    def move(tensor: Tensor) -> Tensor:
        if tensor.device.type == "meta":
            return tensor
        if id(tensor) not in known:
            known[id(tensor)] = (tensor, _on_meta(tensor))
        return known[id(tensor)][1]

    state = {id(t) for t in state_of(model)}
    for module in model.modules():
        places: list[dict[str, Any]] = [module._parameters, module._buffers]
        for place in places:
            place.update({n: move(t) for n, t in place.items() if t is not None})
        for value in module.__dict__.values():  # an RNN also keeps its weights in a list
            if isinstance(value, list):
                value[:] = [move(t) if isinstance(t, Tensor) and id(t) in state else t for t in value]
    return map_tensors(given.args, move), map_tensors(given.kwargs, move)


def _on_meta(tensor: Tensor) -> Tensor:
    like = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")
    if isinstance(tensor, nn.Parameter):
        return nn.Parameter(like, tensor.requires_grad)
    return like.requires_grad_(tensor.requires_grad)


def _held(model: nn.Module) -> Iterator[tuple[Tensor, CpuTensor]]:
    """Plain tensors in the attributes of modules, which `.to()` does not move."""
    state = {storage_key(t) for t in state_of(model)}
    for path, module in model.named_modules():
        if type(module)._apply not in _MOVERS:
            continue  # it may move them itself
        for name, value in module.__dict__.items():
            if name.startswith("_") and name in _OWN:
                continue
            for tensor in tensors_in(value) if isinstance(value, (Tensor, *_HOLDERS)) else ():
                if _counts(tensor) and storage_key(tensor) not in state:
                    yield tensor, CpuTensor(module=path, held=name)


_MOVERS = (nn.Module._apply, nn.RNNBase._apply)
_OWN = set(nn.Module().__dict__)


def _counts(tensor: Tensor) -> bool:
    """On the CPU, and more than one number: a single number may come from any device."""
    return tensor.device.type == "cpu" and tensor.dim() > 0 and tensor.numel() > 0
