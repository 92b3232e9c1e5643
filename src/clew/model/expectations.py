"""What a layer of torch's expects of its input, against what it was given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd

from clew.model.tensors import dtype_name


@dataclass(frozen=True)
class Mismatch:
    """In words that stand by themselves."""

    kind: str
    expected: str
    given: str
    suggestion: str


def shape_text(tensor: Tensor) -> str:
    return "×".join(map(str, tensor.shape)) or "scalar"


def expectation(
    layer: nn.Module, inputs: list[Tensor], error: BaseException, before: str | None
) -> Mismatch | None:
    """The mismatch between a layer and its inputs; None if this layer's rules are not known, or are kept."""
    if not inputs:
        return None
    x = inputs[0]
    if isinstance(layer, nn.Embedding):
        return _embedding(layer, x)
    if isinstance(layer, nn.modules.loss._Loss) and len(inputs) > 1:
        return _loss(layer, x, inputs[1])
    weight = next((p for p in layer.parameters(recurse=False) if p.is_floating_point()), None)
    return (
        (_device(layer, x, weight) or _shape(layer, x, before) or _dtype(layer, x, weight))
        if (weight is not None)
        else _shape(layer, x, before)
    )


def _shape(layer: nn.Module, x: Tensor, before: str | None) -> Mismatch | None:
    for kind, rule in _RULES:
        if isinstance(layer, kind):
            return rule(layer, x, before)
    return None


def _device(layer: nn.Module, x: Tensor, weight: Tensor) -> Mismatch | None:
    if x.device == weight.device:
        return None
    return Mismatch(
        "device",
        f"input on {weight.device}, where the weights are",
        f"input on {x.device}",
        f"move the batch: x = x.to({str(weight.device)!r}), or the model: model.to({str(x.device)!r})",
    )


def _dtype(layer: nn.Module, x: Tensor, weight: Tensor) -> Mismatch | None:
    if x.dtype == weight.dtype:
        return None
    wanted, got = dtype_name(weight.dtype), dtype_name(x.dtype)
    fix = f"convert the input: x.to(torch.{wanted})"
    if got == "float64":
        fix += "; numpy arrays are float64 unless made with dtype=np.float32"
    return Mismatch("dtype", f"{wanted}, as the weights are", got, fix)


def _source(size: int, before: str | None) -> str:
    return f": {before} before it outputs {size}" if before else f": what comes before it outputs {size}"


def _linear(layer: nn.Linear, x: Tensor, before: str | None) -> Mismatch | None:
    return _last_size(layer, x, before, "Linear", "in_features", layer.in_features)


def _recurrent(layer: nn.RNNBase, x: Tensor, before: str | None) -> Mismatch | None:
    return _last_size(layer, x, before, type(layer).__name__, "input_size", layer.input_size)


def _last_size(
    layer: nn.Module, x: Tensor, before: str | None, kind: str, name: str, wanted: int
) -> Mismatch | None:
    if not x.dim() or x.shape[-1] == wanted:
        return None
    got = x.shape[-1]
    text = f"{kind}({name}={wanted}) got {got}{_source(got, before)}"
    if x.dim() > 2 and prod(x.shape[1:]) == wanted:
        text += f"; flatten it first: x.flatten(1) gives {x.shape[0]}×{wanted}"
    elif wanted in x.shape[1:]:
        text += f"; dimension {list(x.shape).index(wanted, 1)} has that size: is a transpose missing?"
    else:
        text += f"; set {name}={got}, or have it output {wanted}"
    return Mismatch("shape", f"… × {wanted}", shape_text(x), text)


def _channels(
    kind: str, name: str, wanted: int, spatial: int, x: Tensor, before: str | None
) -> Mismatch | None:
    unbatched = x.dim() == spatial + 1
    if x.dim() not in (spatial + 1, spatial + 2):
        expected = " × ".join(["batch", str(wanted), *("height", "width", "depth")[:spatial]])
        text = f"{kind} takes {spatial + 2} dimensions, got {x.dim()}"
        if x.dim() == spatial and wanted == 1:
            text += ": add the channel: x.unsqueeze(1)"
        return Mismatch("shape", expected, shape_text(x), text)
    got = x.shape[0] if unbatched else x.shape[1]
    if got == wanted:
        return None
    text = f"{kind}({name}={wanted}) got {got} channels{_source(got, before)}"
    if x.shape[-1] == wanted:
        order = "2, 0, 1" if unbatched else "0, 3, 1, 2"
        text += "; the channels are last" + (f": x.permute({order})" if spatial == 2 else "")
    else:
        text += f"; set {name}={got}, or have it output {wanted}"
    return Mismatch("shape", f"batch × {wanted} × …", shape_text(x), text)


def _convolution(layer: _ConvNd, x: Tensor, before: str | None) -> Mismatch | None:
    kind, spatial = type(layer).__name__, len(layer.kernel_size)
    wrong = _channels(kind, "in_channels", layer.in_channels, spatial, x, before)
    if wrong is not None or layer.transposed:
        return wrong
    padding = layer.padding if isinstance(layer.padding, tuple) else (0,) * spatial
    for axis in range(spatial):
        room = x.shape[x.dim() - spatial + axis] + 2 * padding[axis]
        if room < layer.dilation[axis] * (layer.kernel_size[axis] - 1) + 1:
            size = "×".join(map(str, x.shape[-spatial:]))
            text = (
                f"the image is {size} by now, smaller than the kernel: fewer poolings or strides, or padding"
            )
            return Mismatch("shape", f"at least {'×'.join(map(str, layer.kernel_size))}", shape_text(x), text)
    return None


def _batch_norm(layer: _BatchNorm, x: Tensor, before: str | None) -> Mismatch | None:
    kind, wanted = type(layer).__name__, layer.num_features
    if x.dim() < 2:
        return Mismatch("shape", f"batch × {wanted} × …", shape_text(x), f"{kind} needs a batch dimension")
    if x.shape[1] != wanted:
        text = f"{kind}({wanted}) got {x.shape[1]} channels{_source(x.shape[1], before)}"
        return Mismatch("shape", f"batch × {wanted} × …", shape_text(x), text)
    if layer.training and x.numel() == x.shape[1]:
        text = (
            "one value per channel has no variance: a last batch of one sample? "
            "drop_last=True in the loader, or eval() for a single sample"
        )
        return Mismatch("shape", "more than one value per channel", shape_text(x), text)
    return None


def _layer_norm(layer: nn.LayerNorm, x: Tensor, before: str | None) -> Mismatch | None:
    wanted = tuple(layer.normalized_shape)
    if tuple(x.shape[-len(wanted) :]) == wanted:
        return None
    sizes = " × ".join(map(str, wanted))
    text = f"LayerNorm({sizes}) got {shape_text(x)}{_source(x.shape[-1], before) if x.dim() else ''}"
    return Mismatch("shape", f"… × {sizes}", shape_text(x), text)


def _group_norm(layer: nn.GroupNorm, x: Tensor, before: str | None) -> Mismatch | None:
    if x.dim() < 2 or x.shape[1] == layer.num_channels:
        return None
    text = f"GroupNorm(num_channels={layer.num_channels}) got {x.shape[1]}{_source(x.shape[1], before)}"
    return Mismatch("shape", f"batch × {layer.num_channels} × …", shape_text(x), text)


def _attention(layer: nn.MultiheadAttention, x: Tensor, before: str | None) -> Mismatch | None:
    return _last_size(layer, x, before, "MultiheadAttention", "embed_dim", layer.embed_dim)


def _embedding(layer: nn.Embedding, x: Tensor) -> Mismatch | None:
    if x.dtype.is_floating_point:
        text = (
            "an embedding takes the numbers of its rows: pass ids, as x.long() if they are stored as floats"
        )
        return Mismatch("dtype", "int64 or int32", dtype_name(x.dtype), text)
    if x.device != layer.weight.device:
        return _device(layer, x, layer.weight)
    if x.numel() and x.device.type == "cpu" and type(x) in (Tensor, nn.Parameter):
        low, high = int(x.min()), int(x.max())
        if low < 0 or high >= layer.num_embeddings:
            text = f"Embedding has {layer.num_embeddings} rows, and the ids reach from {low} to {high}"
            fix = "; is the vocabulary larger, or is the padding id outside it?"
            return Mismatch(
                "index", f"ids from 0 to {layer.num_embeddings - 1}", f"{low} … {high}", text + fix
            )
    return None


def _loss(layer: nn.Module, x: Tensor, target: Tensor) -> Mismatch | None:
    if x.device != target.device:
        return Mismatch(
            "device", f"target on {x.device}", f"on {target.device}", "move it: target.to(output.device)"
        )
    if not isinstance(layer, (nn.CrossEntropyLoss, nn.NLLLoss)) or x.dim() < 2:
        return _same_shape(layer, x, target)
    if target.dtype.is_floating_point and target.shape != x.shape:
        text = "class numbers must be integers: target.long()"
        return Mismatch("dtype", "int64 class numbers", dtype_name(target.dtype), text)
    wanted = (x.shape[0], *x.shape[2:])
    if not target.dtype.is_floating_point and tuple(target.shape) != wanted:
        expected = "×".join(map(str, wanted))
        fix = "target.squeeze(1)" if target.dim() == 2 and target.shape[1] == 1 else f"a target of {expected}"
        if tuple(target.shape) == tuple(x.shape):
            fix = "target.argmax(1) for one-hot rows"
        text = f"one class number per sample belongs to an output of {shape_text(x)}: {fix}"
        return Mismatch("shape", expected, shape_text(target), text)
    return _classes(layer, x, target)


def _classes(layer: nn.Module, x: Tensor, target: Tensor) -> Mismatch | None:
    known = target[target != getattr(layer, "ignore_index", -100)]
    if known.numel() and known.device.type == "cpu" and not known.dtype.is_floating_point:
        low, high, classes = int(known.min()), int(known.max()), x.shape[1]
        if low < 0 or high >= classes:
            text = f"the output has {classes} classes, and the targets reach from {low} to {high}"
            return Mismatch("index", f"targets from 0 to {classes - 1}", f"{low} … {high}", text)
    return None


def _same_shape(layer: nn.Module, x: Tensor, target: Tensor) -> Mismatch | None:
    if x.shape == target.shape:
        return None
    text = f"{type(layer).__name__} compares element by element"
    if x.dim() == target.dim() + 1 and x.shape[-1] == 1:
        text += ": target.unsqueeze(-1), or output.squeeze(-1)"
    return Mismatch("shape", shape_text(x), shape_text(target), text)


_RULES: tuple[tuple[Any, Callable[[Any, Tensor, str | None], Mismatch | None]], ...] = (
    (nn.Linear, _linear),
    (nn.RNNBase, _recurrent),
    (_ConvNd, _convolution),
    (_BatchNorm, _batch_norm),
    (nn.LayerNorm, _layer_norm),
    (nn.GroupNorm, _group_norm),
    (nn.MultiheadAttention, _attention),
)
