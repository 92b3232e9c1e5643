"""What torch losses expect of an output and its target."""

from __future__ import annotations

from math import prod

import torch
from torch import Tensor

from clew.labs.network.shape_errors.call_expectations import broadcast_clash
from clew.labs.network.shape_errors.mismatch import Mismatch, shape_text, sizes_text
from clew.labs.network.tensor_info import dtype_name
from clew.records.plural import counted

_CLASS_LOSSES = ("cross_entropy", "nll_loss")
_EXACT = ("binary_cross_entropy", "binary_cross_entropy_with_logits")  # the others broadcast
_ELEMENTWISE = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div", "poisson_nll_loss")
# The functions of torch.nn.functional; the modules call them.
LOSSES = (*_CLASS_LOSSES, *_EXACT, *_ELEMENTWISE)

Names = tuple[str, str]  # names of the output and the target on the user's line


def loss_mismatch(
    loss: str, x: Tensor, target: Tensor, names: Names = ("output", "target"), ignore: int = -100
) -> Mismatch | None:
    """Why this torch.nn.functional loss can't compare the two; None if no mismatch is found."""
    if x.device != target.device:
        fix = f"move it: {names[1]}.to({names[0]}.device)"
        return Mismatch("device", f"target on {x.device}", f"on {target.device}", fix)
    if loss in _CLASS_LOSSES:
        return _classes(x, target, names, ignore)
    return _element_by_element(loss, x, target, names)


def _classes(x: Tensor, target: Tensor, names: Names, ignore: int) -> Mismatch | None:
    if not x.dim():
        return None
    if target.dtype.is_floating_point:
        return _floating(x, target, names)
    wanted = (x.shape[0], *x.shape[2:]) if x.dim() > 1 else ()
    if x.dim() > 2 and tuple(target.shape) == tuple(x.shape[:-1]) != wanted:
        return _classes_last(x, target, names)
    if tuple(target.shape) != wanted:
        text = f"an output of {shape_text(x)} needs one class index per sample"
        fix = _reshaping(x, target, wanted, names)
        text += f": {fix}" if fix else f", so {sizes_text(wanted)}" if wanted else ""
        return Mismatch("shape", sizes_text(wanted), shape_text(target), text)
    if target.dtype not in (torch.int64, torch.uint8):
        return Mismatch("dtype", "int64 class indices", dtype_name(target.dtype), f"{names[1]}.long()")
    return _range(x, target, ignore)


def _floating(x: Tensor, target: Tensor, names: Names) -> Mismatch | None:
    """Probabilities have the output's shape; any other shape means class indices."""
    if target.shape == x.shape:
        if target.dtype == x.dtype:
            return None
        fix = f"{names[1]}.to({names[0]}.dtype)"
        return Mismatch("dtype", dtype_name(x.dtype), dtype_name(target.dtype), fix)
    wanted = (x.shape[0], *x.shape[2:]) if x.dim() > 1 else ()
    shape = "" if tuple(target.shape) == wanted else f", of shape {sizes_text(wanted)}"
    text = f"class indices must be integers{shape}: {names[1]}.long()"
    given = dtype_name(target.dtype) + (f" {shape_text(target)}" if shape else "")
    return Mismatch("dtype", f"int64 class indices{shape}", given, text)


def _classes_last(x: Tensor, target: Tensor, names: Names) -> Mismatch:
    """As in a language model: batch × time × classes."""
    output, classes = names
    wanted = (x.shape[0], x.shape[-1], *x.shape[1:-1])
    move = "transpose(1, 2)" if x.dim() == 3 else "movedim(-1, 1)"
    text = (
        f"the class dimension must come second: {output}.{move}; "
        f"or flatten both: {output}.flatten(0, -2), {classes}.flatten()"
    )
    given = f"{output} {shape_text(x)}, {classes} {shape_text(target)}"
    return Mismatch("shape", f"an output of {sizes_text(wanted)}", given, text)


def _reshaping(x: Tensor, target: Tensor, wanted: tuple[int, ...], names: Names) -> str:
    """The call after which the two match; empty if no call is certain to work."""
    output, classes = names
    shape = tuple(target.shape)
    if shape == tuple(x.shape) and x.dim() > 1:
        return f"{classes}.argmax(1) for one-hot rows"
    if len(wanted) and shape == (wanted[0], 1, *wanted[1:]):
        return f"{classes}.squeeze(1)"
    if x.dim() > 2 and shape == (prod(x.shape[:-1]),):
        return f"flatten the output too, {output}.flatten(0, -2)"
    if x.dim() == 2 and len(shape) > 1 and prod(shape) == x.shape[0]:
        return f"flatten the target too, {classes}.flatten()"
    return ""


def _range(x: Tensor, target: Tensor, ignore: int) -> Mismatch | None:
    if target.device.type != "cpu" or type(target) is not Tensor:  # reads values, where that is cheap
        return None
    known = target[target != ignore]
    if known.numel():
        low, high, classes = int(known.min()), int(known.max()), x.shape[1 if x.dim() > 1 else 0]
        if low < 0 or high >= classes:
            known_classes = counted(classes, "class", "classes")
            text = f"the output has {known_classes}, but the targets range from {low} to {high}"
            return Mismatch("index", f"targets from 0 to {classes - 1}", f"{low} … {high}", text)
    return None


def _element_by_element(loss: str, x: Tensor, target: Tensor, names: Names) -> Mismatch | None:
    broadcasts = broadcast_clash(x.shape, target.shape) is None
    if x.shape == target.shape or (loss not in _EXACT and broadcasts):
        if loss in _EXACT and not target.dtype.is_floating_point:
            text = f"the target is a probability and must be a float: {names[1]}.float()"
            return Mismatch("dtype", dtype_name(x.dtype), dtype_name(target.dtype), text)
        return None
    text = f"{loss} compares element by element"
    if tuple(x.shape) == (*target.shape, 1):
        text += f": {names[1]}.unsqueeze(-1), or {names[0]}.squeeze(-1)"
    elif tuple(target.shape) == (*x.shape, 1):
        text += f": {names[1]}.squeeze(-1)"
    return Mismatch("shape", shape_text(x), shape_text(target), text)
