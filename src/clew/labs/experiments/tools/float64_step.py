"""Runs the user's step in double precision, where finite differences are accurate.

Parameters and buffers are replaced in their modules by double copies; anything else the code uses
(constants, class weights, a cast to float32) is cast when it appears. The user's objects are unchanged.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from clew.labs.snapshot.step_batch import BOTH, INPUT, OTHER, TARGET, StepBatch
from clew.labs.snapshot.users_step.replay_lines import line_now
from clew.measure.nested_tensors import map_tensors
from clew.records.site import Line

_LOW = (torch.float32, torch.float16, torch.bfloat16)
_CASTS = ("float", "half", "bfloat16")
_STOPS = {
    "detach", "detach_", "round", "floor", "ceil", "trunc", "sign", "argmax", "argmin", "one_hot",
    "heaviside", "gumbel_softmax", "bernoulli", "multinomial", "item", "tolist", "numpy", "topk",
    "register_hook",
}  # fmt: skip
# The code writes these in place: with a cast, it would write to the copy.
_WRITES = ("__setitem__", "__set__", "out")


class Float64Mode(TorchFunctionMode):
    """Casts the arguments of every torch call; records where the code stops gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.stops: dict[tuple[str, Line], None] = {}
        self.noting = False  # whether the user's own code is running

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if self.noting:
            self._note(func, name, args)
        if name in _CASTS and args and isinstance(args[0], Tensor):
            return args[0].double()
        if name.endswith("_") or name in _WRITES:
            cast = doubled if not args or not _is_low(args[0]) else _like(args[0])
            return func(*args[:1], *map_tensors(args[1:], cast), **map_tensors(kwargs, cast))
        return func(*map_tensors(args, doubled), **map_tensors(kwargs, doubled))

    def _note(self, func: Any, name: str, args: Any) -> None:
        tracked = args and isinstance(args[0], Tensor) and args[0].requires_grad
        data = name == "__get__" and getattr(func, "__self__", None) is Tensor.data
        if tracked and (name in _STOPS or data or not torch.is_grad_enabled()):
            what = ".data" if data else name if name in _STOPS else "no_grad"
            if what != "no_grad" or name not in ("__get__", "size", "dim", "__len__"):
                self.stops[what, line_now()] = None


def doubled(value: Any) -> Any:
    """The same tensor or dtype in double precision."""
    if isinstance(value, Tensor):
        return value.double() if value.dtype in _LOW else value
    return torch.float64 if isinstance(value, torch.dtype) and value in _LOW else value


def _is_low(value: Any) -> bool:
    return isinstance(value, Tensor) and value.dtype in _LOW


def _like(target: Tensor) -> Callable[[Any], Any]:
    """A value written into one of the program's tensors takes that tensor's dtype."""
    return lambda v: v.to(target.dtype) if isinstance(v, Tensor) and v.dtype == torch.float64 else v


def doubled_batch(batch: StepBatch) -> StepBatch:
    return batch.map((INPUT, TARGET, BOTH, OTHER), doubled)


@contextlib.contextmanager
def in_double(models: Iterable[nn.Module]) -> Iterator[Float64Mode]:
    """Everything inside runs in double precision."""
    mode, default = Float64Mode(), torch.get_default_dtype()
    with contextlib.ExitStack() as stack:
        stack.enter_context(double_state(models))
        stack.enter_context(_no_autocast())
        stack.callback(torch.set_default_dtype, default)
        torch.set_default_dtype(torch.float64)
        stack.enter_context(mode)
        yield mode


@contextlib.contextmanager
def double_state(models: Iterable[nn.Module]) -> Iterator[None]:
    """Double copies in place of parameters and buffers, with sharing kept; restored afterwards."""
    modules = list({id(m): m for top in models for m in top.modules()}.values())
    before = [(place, dict(place)) for m in modules for place in (m._parameters, m._buffers)]
    known: dict[int, Tensor] = {}
    try:
        for module in modules:
            for place in (module._parameters, module._buffers):
                for name, tensor in list(place.items()):
                    if tensor is not None and tensor.dtype in _LOW:
                        copy = known.setdefault(id(tensor), _double_copy(tensor))
                        place[name] = copy  # type: ignore[assignment]
            _renew_flat_weights(module)
        yield
    finally:
        for place, values in before:
            place.clear()
            place.update(values)  # type: ignore[arg-type]
        for module in modules:
            _renew_flat_weights(module)


def _double_copy(tensor: Tensor) -> Tensor:
    values = tensor.detach().double().clone()
    return nn.Parameter(values, tensor.requires_grad) if isinstance(tensor, nn.Parameter) else values


def _renew_flat_weights(module: nn.Module) -> None:
    """Recurrent layers keep a list of their weights."""
    if isinstance(module, nn.RNNBase):
        module._flat_weights = [getattr(module, n, None) for n in module._flat_weights_names]


@contextlib.contextmanager
def _no_autocast() -> Iterator[None]:
    """Also where the step itself asks for lower precision."""
    kind: Any = torch.amp.autocast_mode.autocast
    enter, leave = kind.__enter__, kind.__exit__
    kind.__enter__, kind.__exit__ = _nothing, _nothing_at_end
    try:
        with contextlib.ExitStack() as stack:
            for device in ("cpu", "cuda"):
                if torch.is_autocast_enabled(device):
                    stack.callback(torch.set_autocast_enabled, device, True)
                    torch.set_autocast_enabled(device, False)
            yield
    finally:
        kind.__enter__, kind.__exit__ = enter, leave


def _nothing(self: Any) -> Any:
    return self


def _nothing_at_end(self: Any, *_: Any) -> bool:
    return False
