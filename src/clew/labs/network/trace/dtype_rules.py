"""Dtype combinations that torch rejects for real but accepts on fake tensors.

If an op's tensors have several dtypes it is tried for real, on tensors of the same shapes with arbitrary
content: torch itself then rejects it, in its own words.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

from clew.measure.nested_tensors import map_tensors

# Ops that accept integers as fake tensors but not as real ones.
_FLOATS_ONLY = {
    "mm",
    "addmm",
    "bmm",
    "baddbmm",
    "mv",
    "addmv",
    "convolution",
    "gelu",
    "silu",
    "_softmax",
    "_log_softmax",
    "native_layer_norm",
    "native_group_norm",
    "native_batch_norm",
    "binary_cross_entropy",
}
_CLASSES = {"nll_loss_forward", "nll_loss2d_forward"}  # and these only one integer dtype
MOST = 2**24  # elements: with more, trying the op takes too long


def refuse_types(func: Any, args: Any, kwargs: Any) -> None:
    """Raise what torch would raise if it does not accept these dtypes together."""
    tensors = [t for t in (*args, *kwargs.values()) if isinstance(t, Tensor)]
    kinds = {t.dtype for t in tensors}
    name = func._schema.name.removeprefix("aten::")
    if len(kinds) < 2 and name not in _FLOATS_ONLY:
        return
    floats = {kind for kind in kinds if kind.is_floating_point or kind.is_complex}
    whole = kinds - floats
    mixed = len(floats) > 1 or (whole and name in _FLOATS_ONLY)
    if (mixed or (name in _CLASSES and whole - {torch.int64})) and _small(tensors):
        _try(func, args, kwargs)


def _small(tensors: list[Tensor]) -> bool:
    sizes = [size for t in tensors for size in t.shape]
    return all(type(size) is int for size in sizes) and sum(t.numel() for t in tensors) <= MOST


def _try(func: Any, args: Any, kwargs: Any) -> None:
    with _disable_current_modes(), torch.no_grad():
        func(*map_tensors(list(args), _real), **map_tensors(kwargs, _real))


def _real(tensor: Tensor) -> Tensor:
    """A real CPU tensor; zeros if it may contain indices."""
    made = torch.empty_strided(tuple(tensor.shape), tensor.stride(), dtype=tensor.dtype)
    return made if tensor.is_floating_point() else made.zero_()
