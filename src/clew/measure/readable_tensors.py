"""Which tensors can be read, and the values of any kind of tensor as one plain real tensor.

A program may use tensors that are not one block of numbers: sparse, nested, quantised, or a wrapper around
something else. Torch refuses most operations on them, each with a different error, so check here before
reading values.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

PLAIN = frozenset({Tensor, torch.nn.Parameter})

# What torch raises for a tensor without readable memory, or for a missing op.
UNREADABLE = (RuntimeError, TypeError, ValueError, AttributeError, IndexError, BufferError)
_COMPRESSED = frozenset({torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc})


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


def readable(t: Tensor) -> Tensor | None:
    """The same numbers in a plain real tensor of any shape: enough for its norm and to find NaN.

    Complex numbers are read as pairs, sparse tensors as their stored values, a distributed tensor as its
    local part. For a tensor that cannot be read (quantised, fake, a wrapper around something else) the
    result is None: not known, which is different from NaN.
    """
    try:
        with torch.no_grad():
            return _numbers(t)
    except UNREADABLE:
        return None


def _numbers(t: Tensor) -> Tensor | None:
    own = as_base(t)
    if own is None:
        return None
    t = own.detach()
    if t.is_nested:
        t = t.values()
    elif t.layout is torch.sparse_coo:
        t = t.coalesce().values()
    elif t.layout in _COMPRESSED:
        t = t.values()
    elif t.layout is not torch.strided:
        t = t.to_dense()  # mkldnn has a format of its own
    if t.is_meta or t.is_quantized:
        return None
    return torch.view_as_real(t.resolve_conj()) if t.is_complex() else t


def as_base(t: Tensor) -> Tensor | None:
    """The tensor without its class's behaviour; None if the class stands for something else."""
    if type(t) in PLAIN:
        return t
    if type(t).__torch_dispatch__ is not Tensor.__torch_dispatch__:
        # For a tensor that is distributed over processes, the part that this process has.
        here: Any = getattr(t, "_local_tensor", None)
        return here if type(here) in PLAIN else None
    with torch._C.DisableTorchFunctionSubclass():
        return t.detach().as_subclass(Tensor)


def is_nonfinite(t: Tensor) -> bool:
    """Whether any element is known to be NaN or infinite."""
    values = readable(t)
    if values is None or not values.is_floating_point():
        return False
    try:
        # Some 8-bit formats have no isfinite of their own.
        wide = values.float() if values.element_size() == 1 else values
        return not bool(torch.isfinite(wide).all())
    except UNREADABLE:
        return False
