"""The initial weights: their scale, and layers that pass no signal."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

from clew.hooks.collect_layers.layer_flow import AFFINE
from clew.hooks.collect_loop.parameter_inventory import rows_alike
from clew.labs.network.network_inputs import ForwardInputs
from clew.labs.network.trace.op_tracer import ForwardTrace, ModuleCall
from clew.labs.network.trace.traced_forward import for_real
from clew.labs.network.traced_structure import makes_afresh
from clew.measure.nested_tensors import tensors_in
from clew.records.facts.model_facts import AlikeRow, InitialWeightsFact
from clew.records.network import INPUT

ROWS = 64  # rows of a weight from which its norm is estimated
WEIGHTED = (*AFFINE, nn.RNNBase, nn.RNNCellBase, nn.MultiheadAttention)


def weight_norms(trace: ForwardTrace) -> dict[str, float]:
    """By path of the layer, the 2-norm of its weight, estimated from some of its rows."""
    return {call.path: _norm(weight) for call, weight in _layers(trace)}


def largest_gain(trace: ForwardTrace, norms: dict[str, float]) -> float:
    """The largest gain of any layer: root mean square of its weights times the root of the fan-in."""
    return max((norms[call.path] / math.sqrt(w.shape[0]) for call, w in _layers(trace)), default=0.0)


def _layers(trace: ForwardTrace) -> Iterator[tuple[ModuleCall, nn.Parameter]]:
    """The first call of every linear and convolution layer with a trainable weight."""
    for call in trace.calls:
        if call.number == 1 and isinstance(call.module, AFFINE):
            weight = call.module._parameters.get("weight")  # a parametrised one would be computed
            if weight is not None and weight.requires_grad and weight.numel():
                yield call, weight


def _norm(weight: Tensor) -> float:
    rows = weight.detach()[:: max(weight.shape[0] // ROWS, 1)]
    return math.sqrt(float(rows.float().square().sum()) * weight.shape[0] / max(rows.shape[0], 1))


def output_spreads(model: nn.Module, given: ForwardInputs) -> dict[str, float]:
    """By path of the layer, the standard deviation of its first output, from a forward with values."""
    found: dict[str, float] = {}

    def note(call: ModuleCall, output: Any) -> None:
        first = next((t for t in tensors_in(output) if t.is_floating_point()), None)
        if isinstance(call.module, AFFINE) and call.path not in found and first is not None:
            with torch.no_grad():
                found[call.path] = float(first.float().std())

    for_real(model, given.args, given.kwargs, ops=False, on_call=note)
    return found


def start_fact(trace: ForwardTrace, root: str) -> InitialWeightsFact:
    """The `initial_weights` fact: layers whose units all start equal and that feed further layers.

    A weight of zeros is reported only if nothing bypasses it: residual branches, adapters, gates and
    the last layers of a network start at zero on purpose.
    """
    found = []
    for call, weight in _layers(trace):
        if not _has_units(call.module, weight) or not rows_alike(weight):
            continue
        zero = not bool(weight.detach().any())
        behind = _behind(trace, call)
        calls = (c for c in trace.calls if c.module is call.module)
        if behind and (not zero or all(_is_only_way(trace, c) for c in calls)):
            found.append(AlikeRow(call.path, "weight", zero, behind))
    return InitialWeightsFact(root, tuple(found))


def _has_units(module: nn.Module, weight: Tensor) -> bool:
    """Several units that get the same input; those of a depthwise convolution get one channel each."""
    alone = isinstance(module, _ConvNd) and (module.groups > 1 or module.transposed)
    return weight.dim() > 1 and weight.shape[0] > 1 and not alone


def _below(trace: ForwardTrace, call: ModuleCall) -> set[int]:
    """The ops that depend on a layer's output."""
    found = set(call.makes)
    for op in trace.ops[min(call.makes, default=0) :]:
        if not makes_afresh(op) and any(s in found for s in op.sources):
            found.add(op.index)
    return found


def _behind(trace: ForwardTrace, call: ModuleCall) -> str:
    """The next layer with weights that depends on this one's output; empty if this is the last."""
    below = _below(trace, call)
    after = (c for c in trace.calls[call.index + 1 :] if isinstance(c.module, WEIGHTED))
    return next((c.path for c in after if any(r in below for r in c.reads)), "")


def _is_only_way(trace: ForwardTrace, call: ModuleCall) -> bool:
    """Whether everything that the result has from the inputs passes through this call."""
    below, fed = _below(trace, call), set[int]()
    for op in trace.ops:
        if not makes_afresh(op) and (op.given or any(s in fed for s in op.sources)):
            fed.add(op.index)
            outside = bool(op.given) or any(s in fed and s not in below for s in op.sources)
            if op.index in below and op.index not in call.makes and outside:
                return False
    return all(op in below or op == INPUT or op not in fed for op in trace.makers)
