"""Which tensors can be read, and what can still be said about the others.

A program may use tensors that are not one block of numbers: sparse, nested, quantised, or a wrapper around
something else. Torch refuses most operations on them, each with a different error, so check here before
reading values.
"""

from __future__ import annotations

import torch
from torch import Tensor

PLAIN = frozenset({Tensor, torch.nn.Parameter})


def has_values(tensor: Tensor) -> bool:
    """Whether it is a dense tensor with its values in memory, on any device."""
    if type(tensor) in PLAIN:
        return _is_dense(tensor)
    if type(tensor).__torch_dispatch__ is not Tensor.__torch_dispatch__:
        return False  # fake, distributed, nested, …: a wrapper around something else
    with torch._C.DisableTorchFunctionSubclass():
        return _is_dense(tensor)


def _is_dense(tensor: Tensor) -> bool:
    return tensor.layout is torch.strided and not (tensor.is_nested or tensor.is_quantized or tensor.is_meta)


def stored_values(tensor: Tensor) -> Tensor | None:
    """A dense tensor itself, the stored values of a sparse one (an embedding's gradient), otherwise None."""
    if tensor.layout is torch.sparse_coo:
        tensor = tensor.detach().coalesce().values()
    return tensor if has_values(tensor) else None


def shape_of(tensor: Tensor) -> tuple[int, ...]:
    """Its shape; for a nested tensor the number of its parts, which have their own shapes."""
    return (tensor.size(0),) if tensor.is_nested else tuple(tensor.shape)
