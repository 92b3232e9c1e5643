"""The numbers that a tensor of any kind holds, as one plain real tensor: enough for its norm, and to see NaN.

Complex numbers are read as pairs, sparse tensors as what they store, a distributed one as the part
that is here. What can't be read (quantised, fake, a wrapper around something else) is None:
that is not known, which is something else than NaN.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from clew.measure.readable_tensors import PLAIN

# What torch raises for a tensor without readable memory, or for an op that it does not have.
UNREADABLE = (RuntimeError, TypeError, ValueError, AttributeError, IndexError, BufferError)
_COMPRESSED = frozenset({torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc})


def readable(t: Tensor) -> Tensor | None:
    """The same numbers in a tensor with memory of its own, of whatever shape; None if there is none."""
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
    """The tensor without the behaviour of its class; None if the class stands for something else."""
    if type(t) in PLAIN:
        return t
    if type(t).__torch_dispatch__ is not Tensor.__torch_dispatch__:
        # Of a tensor that is spread over processes, the part that this one has.
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
