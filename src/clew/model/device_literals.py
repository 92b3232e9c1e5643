"""A tensor that a forward creates on a fixed device: found without a GPU, by a forward on the meta device.

All of the model and its inputs are put there. What `torch.arange(n)` then makes is on the CPU, and
fails where it meets the others, as it would on a GPU.
"""

from __future__ import annotations

import os
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode

from clew.model.forwards import stand_in, without_computing
from clew.model.inputs import Feed
from clew.model.tensors import replaced
from clew.model.tracing import Op, Trace
from clew.model.visiting import op_name
from clew.structure import INPUT

_MAY_MIX = {
    "index",
    "index_put",
    "unsafe_index",
    "unsafe_index_put",
    "copy",
    "to_copy",
}  # any devices will do


def device_notes(model: nn.Module, given: Feed, trace: Trace) -> list[str]:
    """What to say of the first such tensor; nothing if all follow the model's device."""
    if not any(map(_creates, trace.ops)) or not _all_on_cpu(trace):
        return []
    maker = device_literal(model, given)
    if maker is None:
        return []
    where = f" ({os.path.basename(maker.file)}:{maker.line})" if maker.file else ""
    return [
        f"on a GPU this forward would fail: {op_name(maker)}{where} makes its tensor on the CPU; "
        "pass the device of an input: device=x.device"
    ]


def device_literal(model: nn.Module, given: Feed) -> Op | None:
    """The op that made the tensor which met others on another device."""
    fake = FakeTensorMode(allow_non_fake_inputs=True)
    known: dict[int, tuple[Tensor, Any]] = {}

    def convert(tensor: Tensor) -> Any:
        if type(tensor).__name__ == "FakeTensor":
            return tensor
        if id(tensor) not in known:
            known[id(tensor)] = (tensor, stand_in(fake, tensor, torch.device("meta")))
        return known[id(tensor)][1]

    args, kwargs = replaced(given.args, convert), replaced(given.kwargs, convert)
    trace = without_computing(model, args, kwargs, mode=fake, convert=convert)
    meetings = [op.sources for op in trace.ops if _mixes(op)]
    if trace.failed_at is not None and "device" in str(trace.error):
        meetings.append(trace.failed_at[1])
    makers = (_created_by(trace, s) for sources in meetings for s in sources)
    return next((maker for maker in makers if maker is not None), None)


def _mixes(op: Op) -> bool:
    """Tensors of two devices meet, which fails but on the meta device; numbers may come from anywhere."""
    return len({t.device for t in op.inputs if t.shape}) > 1 and op_name(op) not in _MAY_MIX


def _creates(op: Op) -> bool:
    """Whether an op makes a tensor out of nothing, of more than one number, in the user's own code."""
    return not op.inputs and op.file is not None and any(t.shape and t.bytes for t in op.outputs)


def _created_by(trace: Trace, number: int) -> Op | None:
    """Back from a tensor to what created it on the CPU, over views and casts."""
    while number != INPUT:
        op = trace.ops[number]
        if any(t.device != "cpu" for t in op.outputs):
            return None
        if _creates(op):
            return op
        number = max(op.sources, default=INPUT)
    return None


def _all_on_cpu(trace: Trace) -> bool:
    return all(t.device == "cpu" for op in trace.ops for t in op.outputs)
