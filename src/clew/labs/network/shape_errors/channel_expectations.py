"""Layers that want the channels in the second dimension: convolutions and their norms."""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd

from clew.labs.network.shape_errors.mismatch import Maker, Mismatch, channels_source, shape_text

_PLACES = {1: ("length",), 2: ("height", "width"), 3: ("depth", "height", "width")}
# Dimensions of an input, by layer; a SyncBatchNorm takes any.
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
    text = f"{type(layer).__name__}(in_channels={wanted}) got {got} channels"
    if _are_last(wanted, x.shape[1:]):
        text += f": they are last; {channels_second(x)}"
    elif got % layer.groups:
        source = channels_source(got, x, before)
        text += f"{source}; it must output {wanted}, or another multiple of groups={layer.groups}"
    else:
        text += f"{channels_source(got, x, before)}; set in_channels={got}, or have it output {wanted}"
    return Mismatch("shape", f"batch × {wanted} × …", shape_text(x), text)


def _are_last(wanted: int, sizes: Sequence[int]) -> bool:
    """Nowhere else, that is: an image of 1×1 says nothing of where its one channel is."""
    return sizes[-1] == wanted and list(sizes).count(wanted) == 1


def channels_second(x: Tensor, batched: bool = True) -> str:
    """The call that brings the last dimension where the channels belong."""
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
        f"{type(layer).__name__}(in_channels={wanted}) reads {shape_text(x)} as one sample with {got} "
        "channels"
    )
    if _are_last(wanted, x.shape):
        text += f": they are last; {channels_second(x, batched=False)}"
    elif wanted == 1:
        batch = "×".join(map(str, (got, 1, *x.shape[1:])))
        text += f": add a channel dimension, x.unsqueeze(1) gives {batch}"
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
            size = "×".join(map(str, x.shape[-spatial:]))
            text = (
                f"the {what} is down to {size} here, smaller than the kernel: use fewer poolings or "
                "strides, or padding"
            )
            return Mismatch("shape", f"at least {'×'.join(map(str, layer.kernel_size))}", shape_text(x), text)
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
        text = f"{kind}({wanted}) got {x.shape[1]} channels{_where_channels(x, wanted, before)}"
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
