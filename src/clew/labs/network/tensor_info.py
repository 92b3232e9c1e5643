"""Describes tensors without their values: shape, dtype, device, bytes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor

from clew.records.network import TensorInfo


def described(tensor: Tensor, requires_grad: bool | None = None) -> TensorInfo:
    """A tensor without its values; symbolic sizes become their example numbers."""
    shape: tuple[int, ...] = tuple(tensor.shape)
    if any(type(s) is not int for s in shape):
        shape = tuple(map(size_of, shape))
    return TensorInfo(
        shape=shape,
        dtype=dtype_name(tensor.dtype),
        device=device_name(_device_of(tensor)),
        requires_grad=tensor.requires_grad if requires_grad is None else requires_grad,
        bytes=prod(shape) * tensor.dtype.itemsize,
    )


def lacks_values(tensor: Tensor) -> bool:
    """Whether it has a shape but no values: on the meta device, or fake."""
    return isinstance(tensor, FakeTensor) or tensor.device.type == "meta"


def with_names(tensors: Sequence[TensorInfo], names: Sequence[tuple[str, ...]]) -> tuple[TensorInfo, ...]:
    """The same tensors with these names for their sizes, if every size has one."""
    if len(names) != len(tensors):
        return tuple(tensors)
    return tuple(
        dataclasses.replace(t, dims=tuple(d or str(s) for d, s in zip(n, t.shape, strict=True)))
        if len(n) == len(t.shape)
        else t
        for t, n in zip(tensors, names, strict=True)
    )


def _device_of(tensor: Tensor) -> torch.device:
    """A fake tensor's `device` is an op that passes through every mode, so read the device it stands for."""
    return tensor.fake_device if isinstance(tensor, FakeTensor) else tensor.device


def size_of(size: Any) -> int:
    """`int()` would specialise a symbol to its example; this only reads it."""
    return size if type(size) is int else int(getattr(size.node, "hint", None) or 0)


def storage_bytes(tensor: Tensor) -> int:
    """Bytes of the whole storage that this tensor is a view of."""
    try:
        return size_of(tensor.untyped_storage().nbytes())
    except (NotImplementedError, RuntimeError):  # of symbols, or of a layout without one
        return described(tensor).bytes


@lru_cache(maxsize=64)
def dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


@lru_cache(maxsize=64)
def device_name(device: torch.device) -> str:
    return str(device)
