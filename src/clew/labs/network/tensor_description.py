"""Tensors that print themselves: what a person wants to know of one, instead of its first numbers."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

from clew.labs.network.tensor_info import dtype_name
from clew.labs.network.trace.measured_values import histogram, measured, read_values
from clew.records.network import Statistics

_plain: dict[str, Any] = {}  # torch's own, while ours are in their places


@dataclass(frozen=True)
class Description:
    """A tensor in one line; in a notebook, in one row."""

    shape: tuple[int, ...]
    dtype: str
    device: str
    grad_fn: str | None
    requires_grad: bool
    values: Statistics | None
    zeros: float  # share
    nans: int
    infs: int
    histogram: str  # of the finite values, from the smallest to the largest
    only: str | None = None  # the value, if there is one only
    note: str = ""  # what the numbers are of, if not of the elements as they are
    sampled: bool = False  # all but range, NaN and Inf are of an even sample

    def __str__(self) -> str:
        return " ".join(part for part in (f"Tensor {self._kind()}", *self._parts()) if part)

    __repr__ = __str__

    def _kind(self) -> str:
        shape = "×".join(map(str, self.shape)) or "scalar"
        where = "" if self.device == "cpu" else f" {self.device}"
        return f"{shape} {self.dtype}{where}" + (f" {self.note}" if self.note else "")

    def _parts(self) -> list[str]:
        grad = self.grad_fn or ("requires_grad" if self.requires_grad else "")
        if self.only is not None:
            return [self.only, grad]
        if self.values is None:
            return [grad]
        v = self.values
        about = "~" if self.sampled else ""
        numbers = f"{about}{v.mean:.3g}±{v.std:.3g} [{v.min:.3g}, {v.max:.3g}] {self.histogram}".rstrip()
        zeros = f"{about}{self.zeros:.0%} zeros" if self.zeros > 0.005 else ""
        bad = [f"{n:,} {what}!" for n, what in ((self.nans, "NaN"), (self.infs, "Inf")) if n]
        return [numbers, zeros, *bad, grad]

    def _repr_html_(self) -> str:
        cells = "".join(f"<td>{html.escape(p)}</td>" for p in (self._kind(), *self._parts()) if p)
        return f"<table><tr>{cells}</tr></table>"


def describe(tensor: Tensor) -> Description:
    """Shape, type, device, gradient function, mean ± std, range, zeros, NaN and Inf, a tiny histogram."""
    if not isinstance(tensor, Tensor):
        raise TypeError(f"describe takes a tensor, not {type(tensor).__name__}")
    with _disable_current_modes(), torch.no_grad():
        values, note = read_values(tensor)
        found = measured(values) if values is not None else None
        one = values is not None and tensor.layout is torch.strided and values.numel() == 1
        return Description(
            shape=_shape(tensor),
            dtype=dtype_name(tensor.dtype),
            device=str(tensor.device),
            grad_fn=tensor.grad_fn.name() if tensor.grad_fn is not None else None,
            requires_grad=tensor.requires_grad,
            values=found.statistics if found is not None else None,
            zeros=found.zeros if found is not None else 0.0,
            nans=found.nans if found is not None else 0,
            infs=found.infs if found is not None else 0,
            histogram=histogram(found.sample) if found is not None else "",
            only=_only(tensor) if one else None,
            note="" if one else note,
            sampled=found is not None and found.sampled,
        )


def _shape(tensor: Tensor) -> tuple[int, ...]:
    """Of a nested tensor, how many it holds: their shapes differ."""
    return (tensor.size(0),) if tensor.is_nested else tuple(int(s) for s in tensor.shape)


def _only(tensor: Tensor) -> str | None:
    if tensor.is_nested:
        return None
    return str((tensor.dequantize() if tensor.is_quantized else tensor.detach()).item())


def describe_tensors(on: bool = True) -> None:
    """Have tensors show themselves so in shells, notebooks and tracebacks, until switched off again."""
    if on and not _plain:
        _plain["__repr__"] = Tensor.__repr__
        Tensor.__repr__ = _described_repr  # type: ignore[method-assign,assignment]
        Tensor._repr_html_ = _described_html  # type: ignore[attr-defined]
    elif not on and _plain:
        Tensor.__repr__ = _plain.pop("__repr__")  # type: ignore[method-assign]
        del Tensor._repr_html_  # type: ignore[attr-defined]


def _described_repr(self: Tensor, *, tensor_contents: Any = None) -> str:
    try:
        return str(describe(self))
    except Exception:  # noqa: BLE001 - a subclass that none of this works on; a repr must not fail
        return str(_plain["__repr__"](self, tensor_contents=tensor_contents))


def _described_html(self: Tensor) -> str:
    try:
        return describe(self)._repr_html_()
    except Exception:  # noqa: BLE001 - as above
        return f"<pre>{html.escape(str(_plain['__repr__'](self)))}</pre>"
