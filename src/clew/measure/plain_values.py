"""Values of any kind of tensor as one plain real tensor: enough for its norm and to find NaN.

Complex numbers are read as pairs, sparse tensors as their stored values, a distributed tensor as its local
part. For a tensor that cannot be read (quantised, fake, a wrapper around something else) the result is None:
not known, which is different from NaN.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from clew.measure.readable_tensors import PLAIN

# What torch raises for a tensor without readable memory, or for a missing op.
UNREADABLE = (RuntimeError, TypeError, ValueError, AttributeError, IndexError, BufferError)
_COMPRESSED = frozenset({torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc})


def readable(t: Tensor) -> Tensor | None:
    """The same numbers in a tensor of any shape with memory of its own; None if it has none."""
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
