"""The numbers in a tensor of any kind, and what there is to say of them without taking long."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import gcd

import torch
from torch import Tensor

from clew.labs.network.trace.value_statistics import statistics_of
from clew.records.network import Statistics

BARS = "▁▂▃▄▅▆▇█"
BINS = 12
LARGE = 2_000_000  # elements; of more than that an even sample is looked at, which takes some 50 ms
VAST = 1e200
CHUNK = 4_000_000  # elements that are looked at at once, so that a large tensor is not doubled


@dataclass(frozen=True)
class Measured:
    """Range, NaN and Inf are of all elements, the rest is of the sample."""

    statistics: Statistics
    zeros: float  # share
    nans: int
    infs: int
    sample: Tensor
    sampled: bool


def read_values(tensor: Tensor) -> tuple[Tensor | None, str]:
    """The numbers to look at, or None if there are none, and what they are if not the elements themselves."""
    if tensor.device.type == "meta" or type(tensor).__name__ == "FakeTensor":
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


def measured(values: Tensor) -> Measured:
    """Of a tensor with at least one element."""
    values, copies = _without_copies(values)
    sampled = values.numel() > LARGE
    sample = _numbers(_even_sample(values) if sampled else values).flatten()
    statistics = statistics_of(sample)
    assert statistics is not None
    low, high, nans, infs = _exact(values) if sampled else _exact(sample)
    if low <= high:
        statistics = replace(statistics, min=low, max=high)
    zeros = float((sample == 0).double().mean())
    return Measured(statistics, zeros, nans * copies, infs * copies, sample, sampled)


def _without_copies(values: Tensor) -> tuple[Tensor, int]:
    """What `expand` repeats is looked at once; how often it stands there."""
    copies = 1
    for dim, (size, stride) in enumerate(zip(values.shape, values.stride(), strict=True)):
        if stride == 0 and size > 1:
            values, copies = values.narrow(dim, 0, 1), copies * size
    return values, copies


def _numbers(values: Tensor) -> Tensor:
    """In a type that torch can calculate with: it can't with all of them."""
    if values.is_complex():
        return values.to(torch.complex128).abs()
    if values.dtype in (torch.float32, torch.float64):
        return values
    small = values.is_floating_point() and values.itemsize < 4
    return values.to(torch.float32 if small else torch.float64)


def _even_sample(values: Tensor) -> Tensor:
    """Every n-th element; n has no divisor in common with a size, else only some columns would be seen."""
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
        finite = finite / VAST  # else the range of the bins may leave that of float64
    counts = torch.histc(finite, BINS)
    levels = (counts / counts.max() * (len(BARS) - 1)).round().int().tolist()
    return "".join(
        BARS[level] if count else " " for level, count in zip(levels, counts.tolist(), strict=True)
    )
