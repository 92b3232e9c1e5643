"""What a layer of torch's expects of its input, against what it was given."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd

from clew.labs.network.shape_errors.channel_expectations import batch_norm, convolution, group_norm
from clew.labs.network.shape_errors.mismatch import Maker, Mismatch, last_size_source, shape_text
from clew.labs.network.shape_errors.recurrent_expectations import wrong_dimensions, wrong_state
from clew.labs.network.tensor_info import dtype_name
from clew.measure.nested_tensors import tensors_in


def expectation(
    layer: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], before: Maker | None
) -> Mismatch | None:
    """The mismatch between a layer and its inputs; None if this layer's rules are not known, or are kept."""
    given = tensors_in((args, kwargs))
    x = given[0] if given else None
    if x is None:
        return None
    if isinstance(layer, nn.Embedding):
        return embedding(layer.weight, x)
    weight = next((p for p in layer.parameters(recurse=False) if p.is_floating_point()), None)
    if weight is not None and x.device != weight.device:
        return _device(x, weight)
    found = _shape(layer, x, before) or (_dtype(x, weight) if weight is not None else None)
    if found is None and isinstance(layer, nn.RNNBase):
        return wrong_state(layer, args, kwargs)
    return found


def _shape(layer: nn.Module, x: Tensor, before: Maker | None) -> Mismatch | None:
    for kind, rule in _RULES:
        if isinstance(layer, kind):
            return rule(layer, x, before)
    return None


def _device(x: Tensor, weight: Tensor) -> Mismatch:
    expected, given = f"input on {weight.device}, like the weights", f"input on {x.device}"
    if weight.device.type == "meta":
        text = (
            "weights on the meta device have no values: load them, load_state_dict(…, assign=True), "
            "or model.to_empty(device=…) and initialise them"
        )
    elif x.device.type == "meta":
        text = "an input on the meta device has no values: create it on the model's device"
    else:
        home, there = str(weight.device), str(x.device)
        text = f"move the batch: x = x.to({home!r}), or the model: model.to({there!r})"
    return Mismatch("device", expected, given, text)


def _dtype(x: Tensor, weight: Tensor) -> Mismatch | None:
    if x.dtype == weight.dtype:
        return None
    wanted, got = dtype_name(weight.dtype), dtype_name(x.dtype)
    fix = f"convert the input: x.to(torch.{wanted})"
    if got == "float64":
        fix += "; NumPy arrays are float64 unless created with dtype=np.float32"
    return Mismatch("dtype", f"{wanted}, like the weights", got, fix)


def _linear(layer: nn.Linear, x: Tensor, before: Maker | None) -> Mismatch | None:
    return _last_size(x, before, "Linear", "in_features", layer.in_features)


def _recurrent(layer: nn.RNNBase, x: Tensor, before: Maker | None) -> Mismatch | None:
    wrong = wrong_dimensions(layer, x)
    return wrong or _last_size(x, before, type(layer).__name__, "input_size", layer.input_size)


def _cell(layer: nn.RNNCellBase, x: Tensor, before: Maker | None) -> Mismatch | None:
    return _last_size(x, before, type(layer).__name__, "input_size", layer.input_size)


def _attention(layer: nn.MultiheadAttention, x: Tensor, before: Maker | None) -> Mismatch | None:
    heads = layer.num_heads
    return _last_size(x, before, "MultiheadAttention", "embed_dim", layer.embed_dim, multiple_of=heads)


def _last_size(
    x: Tensor, before: Maker | None, kind: str, name: str, wanted: int, multiple_of: int = 1
) -> Mismatch | None:
    if not x.dim() or x.shape[-1] == wanted:
        return None
    got = x.shape[-1]
    text = f"{kind}({name}={wanted}) got {got}{last_size_source(got, before)}"
    if x.dim() > 2 and prod(x.shape[1:]) == wanted:
        text += f"; flatten it first: x.flatten(1) gives {x.shape[0]}×{wanted}"
    elif wanted in x.shape[1:]:
        text += f"; dimension {list(x.shape).index(wanted, 1)} has that size: is a transpose missing?"
    elif got % multiple_of == 0:
        text += f"; set {name}={got}, or have it output {wanted}"
    return Mismatch("shape", f"… × {wanted}", shape_text(x), text)


def _layer_norm(layer: nn.LayerNorm, x: Tensor, before: Maker | None) -> Mismatch | None:
    wanted = tuple(layer.normalized_shape)
    if tuple(x.shape[-len(wanted) :]) == wanted:
        return None
    sizes = " × ".join(map(str, wanted))
    text = f"LayerNorm({sizes}) got {shape_text(x)}{last_size_source(x.shape[-1], before) if x.dim() else ''}"
    if len(wanted) == 1 and wanted[0] in x.shape[1:]:
        text += (
            f"; dimension {list(x.shape).index(wanted[0], 1)} has that size, but the last one is normalised"
        )
    return Mismatch("shape", f"… × {sizes}", shape_text(x), text)


def embedding(weight: Tensor, x: Tensor) -> Mismatch | None:
    """Ids against the rows of the table."""
    rows = weight.shape[0]
    if x.dtype.is_floating_point:
        text = "an embedding takes integer ids: pass x.long() if they are stored as floats"
        return Mismatch("dtype", "int64 or int32", dtype_name(x.dtype), text)
    if x.device != weight.device:
        return _device(x, weight)
    if x.numel() and x.device.type == "cpu" and type(x) in (Tensor, nn.Parameter):
        low, high = int(x.min()), int(x.max())
        if low < 0 or high >= rows:
            text = f"Embedding has {rows} rows, but the ids range from {low} to {high}"
            fix = "; is the vocabulary larger, or is the padding id outside it?"
            return Mismatch("index", f"ids from 0 to {rows - 1}", f"{low} … {high}", text + fix)
    return None


_RULES: tuple[tuple[Any, Callable[[Any, Tensor, Maker | None], Mismatch | None]], ...] = (
    (nn.Linear, _linear),
    (nn.RNNBase, _recurrent),
    (nn.RNNCellBase, _cell),
    (_ConvNd, convolution),
    (_BatchNorm, batch_norm),
    (nn.LayerNorm, _layer_norm),
    (nn.GroupNorm, group_norm),
    (nn.MultiheadAttention, _attention),
)
