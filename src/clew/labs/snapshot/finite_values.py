"""Are a tensor's values finite, and where not? Leaves no trace in the program."""

from __future__ import annotations

import torch
from torch import Tensor

from clew.labs.snapshot.held_step import InputStats
from clew.measure.plain_values import readable

MOST_ELEMENTS = 8  # indices that are named


def can_be_bad(tensor: Tensor) -> bool:
    return (tensor.is_floating_point() or tensor.is_complex()) and tensor.device.type != "meta"


def dense(tensor: Tensor) -> Tensor:
    """The values of a tensor of any layout."""
    tensor = tensor.detach()
    if tensor.is_nested:
        return tensor.values()
    if tensor.layout is not torch.strided:
        values = readable(tensor)
        return tensor if values is None else values
    eight_bits = tensor.element_size() == 1 and tensor.is_floating_point()
    return tensor.float() if eight_bits else tensor  # few operations support those


def is_bad(tensor: Tensor) -> bool:
    """Whether any element is NaN or infinite."""
    if not can_be_bad(tensor) or tensor.numel() == 0:
        return False
    values = dense(tensor)
    if bool(torch.isfinite(values.sum())):
        return False
    return not bool(torch.isfinite(values).all())  # a sum may overflow where no element does


def has_nan(tensor: Tensor) -> bool:
    return can_be_bad(tensor) and bool(torch.isnan(dense(tensor)).any())


def result_kind(tensor: Tensor) -> str:
    return "nan" if has_nan(tensor) else "inf"


def bad_indices(tensor: Tensor, most: int = MOST_ELEMENTS) -> tuple[tuple[tuple[int, ...], ...], int]:
    """The first elements that are not finite, and how many there are."""
    where = (~torch.isfinite(dense(tensor))).nonzero()
    return tuple(tuple(int(i) for i in row) for row in where[:most]), len(where)


def bad_rows(tensor: Tensor, most: int = MOST_ELEMENTS) -> tuple[int, ...]:
    """Indices along the first dimension that hold anything non-finite."""
    values = dense(tensor)
    if values.dim() == 0:
        return ()
    rows = (~torch.isfinite(values)).flatten(1).any(1) if values.dim() > 1 else ~torch.isfinite(values)
    return tuple(int(i) for i in rows.nonzero().flatten()[:most])


def stats_of(name: str, tensor: Tensor) -> InputStats:
    """The statistics of one input for the report."""
    values = dense(tensor)
    low = high = float("nan")
    bad = 0
    if values.numel() and not values.is_complex():
        finite = values[torch.isfinite(values)] if values.is_floating_point() else values
        bad = values.numel() - finite.numel()
        if finite.numel():
            low, high = float(finite.min()), float(finite.max())
    return InputStats(
        name, tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."), low, high, bad, values.numel()
    )


def element(tensor: Tensor, index: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """The index into an input that was broadcast to `shape`, given an index into the result."""
    if tensor.dim() > len(shape):
        return None
    own = index[len(shape) - tensor.dim() :]
    sizes = shape[len(shape) - tensor.dim() :]
    if any(size not in (1, full) for size, full in zip(tensor.shape, sizes, strict=True)):
        return None
    return tuple(0 if size == 1 else i for size, i in zip(tensor.shape, own, strict=True))
