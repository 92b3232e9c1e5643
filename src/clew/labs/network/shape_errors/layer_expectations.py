"""Compares what a torch layer expects of its input with what it was given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isqrt, prod
from typing import Any

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd

from clew.labs.network.shape_errors.mismatch import (
    Maker,
    Mismatch,
    channels_source,
    corrected_input,
    last_size_source,
    shape_text,
    sizes_text,
)
from clew.labs.network.tensor_info import dtype_name
from clew.measure.nested_tensors import tensors_in
from clew.records.plural import counted

_PLACES = {1: ("length",), 2: ("height", "width"), 3: ("depth", "height", "width")}
# Number of input dimensions, by layer; a SyncBatchNorm accepts any.
_NORM_DIMS = ((nn.BatchNorm1d, (2, 3)), (nn.BatchNorm2d, (4,)), (nn.BatchNorm3d, (5,)))


def convolution(layer: _ConvNd, x: Tensor, before: Maker | None) -> Mismatch | None:
    spatial = len(layer.kernel_size)
    if x.dim() == spatial + 2:
        return _batched(layer, x, before) or _too_small(layer, x)
    if x.dim() == spatial + 1:
        return _one_sample(layer, x) or _too_small(layer, x)
    expected = " × ".join(["batch", str(layer.in_channels), *_PLACES[spatial]])
    text = f"{type(layer).__name__} takes {spatial + 2} dimensions, got {x.dim()}{_missing(layer, x)}"
    return Mismatch("shape", expected, shape_text(x), text)


def _batched(layer: _ConvNd, x: Tensor, before: Maker | None) -> Mismatch | None:
    wanted, got = layer.in_channels, x.shape[1]
    if got == wanted:
        return None
    text = f"{type(layer).__name__}(in_channels={wanted}) got {counted(got, 'channel')}"
    if _are_last(wanted, x.shape[1:]):
        text += f": they are last; {channels_second(x)}"
    elif got % layer.groups:
        source = channels_source(got, x, before)
        multiple = f"{wanted}, or another multiple of groups={layer.groups}"
        text += f"{source}; {corrected_input(multiple, before)}"
    else:
        text += (
            f"{channels_source(got, x, before)}; set in_channels={got}, or {corrected_input(wanted, before)}"
        )
    return Mismatch("shape", f"batch × {wanted} × …", shape_text(x), text)


def _are_last(wanted: int, sizes: Sequence[int]) -> bool:
    """Only there: an image of 1×1 does not show where its one channel is."""
    return sizes[-1] == wanted and list(sizes).count(wanted) == 1


def channels_second(x: Tensor, batched: bool = True) -> str:
    """The call that moves the last dimension to where the channels belong."""
    first = 1 if batched else 0
    if x.dim() - first == 2:
        return f"x.transpose({first}, {first + 1})"
    order = [*range(first), x.dim() - 1, *range(first, x.dim() - 1)]
    return f"x.permute({', '.join(map(str, order))})"


def _one_sample(layer: _ConvNd, x: Tensor) -> Mismatch | None:
    """One dimension short: a sample without a batch, or a batch without channels."""
    wanted, got = layer.in_channels, x.shape[0]
    if got == wanted:
        return None
    text = (
        f"{type(layer).__name__}(in_channels={wanted}) reads {shape_text(x)} as one sample with "
        f"{counted(got, 'channel')}"
    )
    if _are_last(wanted, x.shape):
        text += f": they are last; {channels_second(x, batched=False)}"
    elif wanted == 1:
        text += f": add a channel dimension, x.unsqueeze(1) gives {sizes_text((got, 1, *x.shape[1:]))}"
    else:
        text += "; a batch has one more dimension"
    return Mismatch("shape", " × ".join(["batch", str(wanted), "…"]), shape_text(x), text)


def _missing(layer: _ConvNd, x: Tensor) -> str:
    """What would give the tensor the right number of dimensions."""
    spatial, wanted = len(layer.kernel_size), layer.in_channels
    if x.dim() == spatial + 3 and x.shape[2] == wanted:
        return ": x.flatten(0, 1) merges the first two into one batch"
    if x.dim() != spatial:
        return ""
    ways = ["x[None, None] for one sample without batch and channel"] if wanted == 1 else []
    side = isqrt(x.shape[-1] // wanted)
    flattened = wanted * side * side == x.shape[-1] and x.shape[0] != x.shape[-1]
    if spatial == 2 and side > 1 and flattened:
        ways.append(f"x.view(-1, {wanted}, {side}, {side}) if each row is a flattened image")
    return f": {', '.join(ways)}" if ways else ""


def _too_small(layer: _ConvNd, x: Tensor) -> Mismatch | None:
    if layer.transposed or layer.padding == "same":
        return None
    spatial = len(layer.kernel_size)
    padding = layer.padding if isinstance(layer.padding, tuple) else (0,) * spatial
    for axis in range(spatial):
        room = x.shape[x.dim() - spatial + axis] + 2 * padding[axis]
        if room < layer.dilation[axis] * (layer.kernel_size[axis] - 1) + 1:
            what = "sequence" if spatial == 1 else "image"
            text = (
                f"the {what} is down to {sizes_text(x.shape[-spatial:])} here, smaller than the kernel: use "
                "fewer pooling layers or strides, or padding"
            )
            return Mismatch("shape", f"at least {sizes_text(layer.kernel_size)}", shape_text(x), text)
    return None


def batch_norm(layer: _BatchNorm, x: Tensor, before: Maker | None) -> Mismatch | None:
    kind, wanted = type(layer).__name__, layer.num_features
    expected = f"batch × {wanted} × …"
    takes = next((dims for norm, dims in _NORM_DIMS if isinstance(layer, norm)), None)
    if takes is not None and x.dim() not in takes:
        return _wrong_norm(layer, x, takes)
    if x.dim() < 2:
        return Mismatch("shape", expected, shape_text(x), f"{kind} needs a batch dimension")
    if x.shape[1] != wanted:
        text = f"{kind}({wanted}) got {counted(x.shape[1], 'channel')}{_where_channels(x, wanted, before)}"
        return Mismatch("shape", expected, shape_text(x), text)
    if layer.training and x.numel() == x.shape[1]:
        text = (
            "one value per channel has no variance: a last batch of one sample? "
            "drop_last=True in the loader, or eval() for a single sample"
        )
        return Mismatch("shape", "more than one value per channel", shape_text(x), text)
    return None


def _wrong_norm(layer: _BatchNorm, x: Tensor, takes: tuple[int, ...]) -> Mismatch:
    wanted = layer.num_features
    spatial = max(takes) - 2
    expected = f"batch × {wanted}" if 2 in takes else f"batch × {wanted} × {' × '.join(_PLACES[spatial])}"
    text = f"{type(layer).__name__} takes {' or '.join(map(str, takes))} dimensions, got {x.dim()}"
    other = next((norm for norm, dims in _NORM_DIMS if x.dim() in dims), None)
    batch_missing = x.dim() == max(takes) - 1 and x.shape[0] == wanted
    if other is not None and x.shape[1] == wanted and not batch_missing:
        text += f": {other.__name__}({wanted}) takes {x.dim()}"
    elif batch_missing and x.shape[1] != wanted:
        text += ": one sample without its batch? x.unsqueeze(0)"
    return Mismatch("shape", expected, shape_text(x), text)


def group_norm(layer: nn.GroupNorm, x: Tensor, before: Maker | None) -> Mismatch | None:
    wanted = layer.num_channels
    if x.dim() < 2 or x.shape[1] == wanted:
        return None
    text = f"GroupNorm(num_channels={wanted}) got {x.shape[1]}{_where_channels(x, wanted, before)}"
    return Mismatch("shape", f"batch × {wanted} × …", shape_text(x), text)


def _where_channels(x: Tensor, wanted: int, before: Maker | None) -> str:
    if x.dim() > 2 and _are_last(wanted, x.shape[1:]):
        return f": they are last; {channels_second(x)}, and back after it"
    return channels_source(x.shape[1], x, before)


def wrong_dimensions(layer: nn.RNNBase, x: Tensor) -> Mismatch | None:
    if x.dim() in (2, 3):
        return None
    order = "batch × time" if layer.batch_first else "time × batch"
    text = f"{type(layer).__name__} takes 3 dimensions, or 2 for a single sequence, got {x.dim()}"
    if x.dim() == 4 and x.shape[2] * x.shape[3] == layer.input_size:
        text += f": x.flatten(2) gives {sizes_text((*x.shape[:2], layer.input_size))}"
    return Mismatch("shape", f"{order} × {layer.input_size}", shape_text(x), text)


def wrong_state(layer: nn.RNNBase, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Mismatch | None:
    """The hidden state against the input; the batch of a packed sequence is not checked."""
    x, state = (args[0] if args else kwargs.get("input")), (args[1] if len(args) > 1 else kwargs.get("hx"))
    if not isinstance(x, Tensor) or state is None:
        return None
    layers = layer.num_layers * (2 if layer.bidirectional else 1)
    batch = () if x.dim() == 2 else (x.shape[0 if layer.batch_first else 1],)
    sizes = (layer.proj_size or layer.hidden_size, layer.hidden_size)
    for name, tensor, size in zip(("h", "c"), tensors_in(state), sizes, strict=False):
        wanted = (layers, *batch, size)
        if tuple(tensor.shape) != wanted:
            text = _state_words(layer, x, tensor, wanted)
            return Mismatch("shape", f"{name} of {sizes_text(wanted)}", shape_text(tensor), text)
    return None


def _state_words(layer: nn.RNNBase, x: Tensor, state: Tensor, wanted: tuple[int, ...]) -> str:
    shape = tuple(state.shape)
    text = f"{type(layer).__name__} takes its state as layers × batch × hidden"
    if len(wanted) < 3:
        return f"{text}; for a single sequence, without the batch"
    if layer.batch_first:
        text += ", also with batch_first=True"
    if shape == (wanted[1], wanted[0], wanted[2]):
        return f"{text}: transpose(0, 1) fixes it"
    other = x.shape[1 if layer.batch_first else 0]
    if shape == (wanted[0], other, wanted[2]):
        order = "batch × time" if layer.batch_first else "time × batch"
        return f"{text}; x is read as {order}, a batch of {wanted[1]}, but the state is for {other}"
    return text


def expectation(
    layer: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], before: Maker | None
) -> Mismatch | None:
    """The mismatch between a layer and its inputs; None if the layer is unknown, or there is none."""
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
        text += f"; set {name}={got}, or {corrected_input(wanted, before)}"
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
            text = f"Embedding has {counted(rows, 'row')}, but the ids range from {low} to {high}"
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
