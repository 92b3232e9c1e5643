"""Readable tensor descriptions: shape, statistics and problems instead of the first few numbers."""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import gcd
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

from clew.labs.network.tensor_info import dtype_name, lacks_values
from clew.records.network import Statistics

BARS = "▁▂▃▄▅▆▇█"
BINS = 12
LARGE = 2_000_000  # elements; a larger tensor is sampled evenly, which takes about 50 ms
VAST = 1e200
HUGE = 1e140  # sums of squares of larger values exceed the range of float64
CHUNK = 4_000_000  # elements that are read at once, so that a large tensor is not copied whole

_plain: dict[str, Any] = {}  # torch's own functions while ours are installed


@dataclass(frozen=True)
class TensorDescription:
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
    note: str = ""  # what the numbers describe, if not the elements themselves
    sampled: bool = False  # all but range, NaN and Inf come from an even sample

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


def describe(tensor: Tensor) -> TensorDescription:
    """Shape, type, device, gradient function, mean ± std, range, zeros, NaN and Inf, a tiny histogram."""
    if not isinstance(tensor, Tensor):
        raise TypeError(f"describe takes a tensor, not {type(tensor).__name__}")
    with _disable_current_modes(), torch.no_grad():
        values, note = read_values(tensor)
        found = measured(values) if values is not None else None
        one = values is not None and tensor.layout is torch.strided and values.numel() == 1
        return TensorDescription(
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
    """For a nested tensor, how many tensors it has: their shapes differ."""
    return (tensor.size(0),) if tensor.is_nested else tuple(int(s) for s in tensor.shape)


def _only(tensor: Tensor) -> str | None:
    if tensor.is_nested:
        return None
    return str((tensor.dequantize() if tensor.is_quantized else tensor.detach()).item())


def describe_tensors(on: bool = True) -> None:
    """Make tensors print this way in shells, notebooks and tracebacks, until switched off."""
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


@dataclass(frozen=True)
class ValueSummary:
    """Range, NaN and Inf cover all elements, the rest the sample."""

    statistics: Statistics
    zeros: float  # share
    nans: int
    infs: int
    sample: Tensor
    sampled: bool


def read_values(tensor: Tensor) -> tuple[Tensor | None, str]:
    """The numbers to describe, or None if there are none, and what they are if not the elements."""
    if lacks_values(tensor):
        return None, ""
    if tensor.is_nested:
        parts = [part.detach().flatten() for part in tensor.unbind()]
        return _or_none(torch.cat(parts) if parts else torch.empty(0)), "nested"
    if tensor.layout is not torch.strided:
        kind = str(tensor.layout).removeprefix("torch.sparse_")
        stored = tensor.detach()
        stored = stored._values() if tensor.layout is torch.sparse_coo else stored.values()
        values, note = read_values(stored)
        return values, f"sparse {kind} nnz {tensor._nnz():,}" + (f" {note}" if note else "")
    if tensor.is_quantized:
        return _or_none(tensor.detach().dequantize()), "quantized"
    if tensor.is_complex():
        return _or_none(tensor.detach()), "magnitude"
    return _or_none(tensor.detach()), ""


def _or_none(values: Tensor) -> Tensor | None:
    return values if values.numel() else None


def measured(values: Tensor) -> ValueSummary:
    """Statistics of a tensor with at least one element."""
    values, copies = _without_copies(values)
    sampled = values.numel() > LARGE
    sample = _numbers(_even_sample(values) if sampled else values).flatten()
    statistics = statistics_of(sample)
    assert statistics is not None
    low, high, nans, infs = _exact(values) if sampled else _exact(sample)
    if low <= high:
        statistics = replace(statistics, min=low, max=high)
    zeros = float((sample == 0).double().mean())
    return ValueSummary(statistics, zeros, nans * copies, infs * copies, sample, sampled)


def _without_copies(values: Tensor) -> tuple[Tensor, int]:
    """What `expand` repeats is read once; returns how often it is repeated."""
    copies = 1
    for dim, (size, stride) in enumerate(zip(values.shape, values.stride(), strict=True)):
        if stride == 0 and size > 1:
            values, copies = values.narrow(dim, 0, 1), copies * size
    return values, copies


def _numbers(values: Tensor) -> Tensor:
    """In a dtype that torch can compute with: it can't with all of them."""
    if values.is_complex():
        return values.to(torch.complex128).abs()
    if values.dtype in (torch.float32, torch.float64):
        return values
    small = values.is_floating_point() and values.itemsize < 4
    return values.to(torch.float32 if small else torch.float64)


def _even_sample(values: Tensor) -> Tensor:
    """Every n-th element; n is coprime to the sizes, else only some columns would be sampled."""
    step = values.numel() // LARGE + 1
    while any(gcd(step, size) > 1 for size in values.shape):
        step += 1
    places = torch.arange(0, values.numel(), step, device=values.device)
    if values.is_contiguous():
        return values.view(-1)[places]
    return values[torch.unravel_index(places, values.shape)]


def _exact(values: Tensor) -> tuple[float, float, int, int]:
    """Smallest and largest finite value, how many NaN and how many Inf."""
    low, high, nans, infs = float("inf"), float("-inf"), 0, 0
    for part in _parts(values):
        numbers = _numbers(part)
        least, most = map(float, numbers.aminmax())
        if not (abs(least) < float("inf") and abs(most) < float("inf")):  # NaN too: it spreads
            nans += int(numbers.isnan().sum())
            infs += int(numbers.isinf().sum())
            numbers = numbers[numbers.isfinite()]
            if not numbers.numel():
                continue
            least, most = map(float, numbers.aminmax())
        low, high = min(low, least), max(high, most)
    return low, high, nans, infs


def _parts(values: Tensor) -> Iterator[Tensor]:
    if values.numel() <= CHUNK:
        yield values
        return
    longest = max(range(values.dim()), key=lambda d: values.shape[d])
    across = values.numel() // values.shape[longest]
    yield from values.split(max(CHUNK // across, 1), longest)


def histogram(sample: Tensor) -> str:
    """Of the finite values, from the smallest to the largest."""
    finite = sample.double().cpu()
    finite = finite[torch.isfinite(finite)]
    if finite.numel() == 0 or finite.min() == finite.max():
        return ""
    if float(finite.abs().max()) > VAST:
        finite = finite / VAST  # else the bins may exceed the range of float64
    counts = torch.histc(finite, BINS)
    levels = (counts / counts.max() * (len(BARS) - 1)).round().int().tolist()
    return "".join(
        BARS[level] if count else " " for level, count in zip(levels, counts.tolist(), strict=True)
    )


def statistics_of(tensor: Tensor) -> Statistics | None:
    """None for what has no values or no numbers."""
    with _disable_current_modes(), torch.no_grad():
        if tensor.is_complex() or tensor.numel() == 0:
            return None
        values = tensor.detach().flatten().to(torch.float64)
        finite = values[torch.isfinite(values)]
        lost = values.numel() - finite.numel()
        if finite.numel() == 0:
            nan = float("nan")
            return Statistics(nan, nan, nan, nan, nan, lost)
        low, high = map(float, finite.aminmax())
        scale = max(abs(low), abs(high), 1.0)
        if scale > HUGE:
            finite = finite / scale
        else:
            scale = 1.0
        return Statistics(
            median=float(finite.median()) * scale,
            mean=float(finite.mean()) * scale,
            std=float(finite.std(correction=0)) * scale,
            min=low,
            max=high,
            nonfinite=lost,
        )
