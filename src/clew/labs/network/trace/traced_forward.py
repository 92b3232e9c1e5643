"""Runs a forward to trace it: on fake tensors if possible, else for real.

Fake tensors have shapes and dtypes but no values, so a model far larger than memory takes seconds. A
model that branches on values, or leaves torch for numpy, can't be traced this way; it is run for real, if
it has real weights.
"""

from __future__ import annotations

import gc
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from clew.hooks.entry.user_line import LIBRARY, USER, kind_of
from clew.labs.network.tensor_info import lacks_values
from clew.labs.network.trace.layer_lines import Place, place_of_class
from clew.labs.network.trace.op_tracer import ForwardTrace, ModuleCall, Tracer
from clew.labs.network.trace.repeated_layers import Repeats
from clew.labs.snapshot.module_state import state_of
from clew.labs.snapshot.snapshot import network_snapshot
from clew.measure.nested_tensors import map_tensors, tensors_in

_LOGGERS = ("torch._subclasses.fake_tensor", "torch.fx.experimental.symbolic_shapes")
WRAPPERS = {"OptimizedModule": "_orig_mod", "DataParallel": "module", "DistributedDataParallel": "module"}

_CPU = torch.device("cpu")

OnCall = Callable[[ModuleCall, Any], None]


def unwrapped(model: nn.Module) -> nn.Module:
    """The user's own model inside torch.compile or DataParallel."""
    while type(model).__name__ in WRAPPERS:
        inner = getattr(model, WRAPPERS[type(model).__name__], None)
        if not isinstance(inner, nn.Module):
            break
        model = inner
    return model


def forward(
    target: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    compute: bool | None = None,
    ops: bool = True,
) -> ForwardTrace:
    """One forward of a module or function; `compute` None tries fake tensors first."""
    if compute is not True:
        trace = without_computing(target, args, kwargs, ops=ops)
        if trace.error is None or compute is False or not can_compute(target, args, kwargs):
            return trace
    return for_real(target, args, kwargs, ops=ops)


def can_compute(target: Any, args: Any, kwargs: Any) -> bool:
    """Whether there are values at all."""
    state = state_of(target) if isinstance(target, nn.Module) else []
    return not any(map(lacks_values, (*state, *tensors_in((args, kwargs)))))


def for_real(
    target: Callable[..., Any],
    args: Any,
    kwargs: Any,
    *,
    ops: bool = True,
    on_call: OnCall | None = None,
    after: Callable[[ForwardTrace], None] | None = None,
) -> ForwardTrace:
    """With values; the model is restored. `after` runs while its state is still that of the forward."""
    root = target if isinstance(target, nn.Module) else None
    with network_snapshot(root, tensors_in((args, kwargs))) as journal:
        known = {id(p): id(p) for p in root.parameters()} if root is not None else {}
        tracer = Tracer(root, journal, ops=ops, aliases=known, on_call=on_call)
        trace = _drop_outside_lines(tracer.watch(target, args, kwargs))
        if after is not None:
            after(trace)
    return trace


def without_computing(
    target: Callable[..., Any],
    args: Any,
    kwargs: Any,
    *,
    ops: bool = True,
    mode: FakeTensorMode | None = None,
    on_call: OnCall | None = None,
    convert: Callable[[Tensor], Any] | None = None,
    repeat: bool = True,
) -> ForwardTrace:
    """On fake tensors; repeated layers are traced once, if `repeat`."""
    root = target if isinstance(target, nn.Module) else None
    fake = mode or FakeTensorMode(allow_non_fake_inputs=True)
    with ExitStack() as stack:
        journal = stack.enter_context(network_snapshot(root, tensors_in((args, kwargs))))
        stack.enter_context(quiet_loggers())
        stack.enter_context(collecting_later())
        convert = convert or converter(fake)
        aliases = swap_state(root, convert) if root is not None else {}
        given = map_tensors(args, convert), map_tensors(kwargs, convert)
        stack.enter_context(fake)
        tracer = Tracer(root, journal, ops=ops, aliases=aliases, on_call=on_call, fake=True)
        repeat = repeat and ops and on_call is None and root is not None
        if repeat and root is not None:
            Repeats(root, tracer)
        trace = _drop_outside_lines(tracer.watch(target, *given))
    if trace.error is not None and repeat:  # show the failure as it happens without this
        return without_computing(target, args, kwargs, mode=fake, convert=convert, repeat=False)
    trace.computed = False
    return trace


def converter(fake: FakeTensorMode) -> Callable[[Tensor], Any]:
    """Tensors on the meta device become CPU ones: torch has the fused kernels used in training there,
    and tensors that a forward creates without a device are on the same one."""
    known: dict[int, tuple[Tensor, Any]] = {}

    def convert(tensor: Tensor) -> Any:
        if isinstance(tensor, FakeTensor):
            return tensor
        on_meta = tensor.device.type == "meta"
        if not on_meta and not _stands_alone(tensor):
            return fake.from_tensor(tensor, static_shapes=True)
        if id(tensor) not in known:
            known[id(tensor)] = (tensor, stand_in(fake, tensor, _CPU if on_meta else tensor.device))
        return known[id(tensor)][1]

    return convert


def _stands_alone(tensor: Tensor) -> bool:
    """No view and no special layout: nothing that torch would have to look up."""
    return (
        type(tensor) in (Tensor, nn.Parameter)
        and tensor.layout == torch.strided
        and tensor._base is None
        and tensor.untyped_storage().nbytes() == tensor.numel() * tensor.itemsize
        and not (tensor.is_conj() or tensor.is_neg() or tensor.is_quantized or tensor.is_nested)
        and (tensor.is_leaf or not tensor.requires_grad)
    )


def stand_in(fake: FakeTensorMode, tensor: Tensor, device: torch.device) -> Any:
    """A tensor with the same properties but no values, on this device."""
    with torch.no_grad():
        like = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")
        made: Any = FakeTensor(fake, like, device)
    made._is_param = isinstance(tensor, nn.Parameter)  # nn.Parameter() would pass it through every mode
    return made.requires_grad_(tensor.requires_grad)


def swap_state(root: nn.Module, convert: Callable[[Tensor], Any]) -> dict[int, int]:
    """Fake parameters and buffers in their places (the snapshot restores the real ones); ids, fake to real.

    Otherwise an op on parameters alone would be computed: torch treats it as a constant.
    """
    aliases: dict[int, int] = {}
    for module in root.modules():
        for place in (module._parameters, module._buffers):
            for name, tensor in list(place.items()):
                if tensor is not None:
                    place[name] = stand_in = convert(tensor)
                    aliases[id(stand_in)] = aliases[id(tensor)] = id(tensor)
    return aliases


@contextmanager
def collecting_later() -> Iterator[None]:
    """A trace creates many small long-lived objects: scanning them for garbage took a tenth of its time."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


@contextmanager
def quiet_loggers() -> Iterator[None]:
    """torch logs the traceback of each op that fails on fake tensors; the error itself says enough."""
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, disabled in zip(loggers, before, strict=True):
            logger.disabled = disabled


def _drop_outside_lines(trace: ForwardTrace) -> ForwardTrace:
    """Called where the forward was called: lines of frames on the stack now are not part of it."""
    outside = set(_library_lines(sys._getframe(1)))
    for call in trace.calls:
        if (call.file, call.line) in outside:
            call.file, call.line = _defined(call.module) if call.parent is None else (None, None)
    for op in trace.ops:
        if (op.file, op.line) in outside:
            op.file, op.line = None, None
    return trace


def _library_lines(frame: FrameType | None) -> list[Place]:
    found: list[Place] = []
    while frame is not None:
        if kind_of(frame.f_code.co_filename) == LIBRARY:
            found.append((frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    return found


def _defined(module: nn.Module) -> Place:
    """Where its class is defined, if in user code."""
    file, line = place_of_class(type(module))
    return (file, line) if file is not None and kind_of(file) == USER else (None, None)
