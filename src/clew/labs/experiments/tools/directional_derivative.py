"""Compares autograd's directional derivative with finite differences at shrinking step sizes.

Near kinks the differences approach the derivative as the steps shrink, or disagree with each
other: then there is no verdict. Where they settle on a value and autograd gives another, autograd is
wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

STEPS = (1e-5, 1e-6, 1e-7)  # of a tensor's size: in double precision all are exact to about 1e-8
JITTER = 1e-3  # of a tensor's size: off the kinks where weights start, at zero above all

SAME, WRONG, UNSURE = "same", "wrong", "unsure"


@dataclass(frozen=True)
class DerivativeComparison:
    """One tensor, one direction."""

    verdict: str
    autograd: float
    finite: float
    error: float  # relative to the larger of the two, or of what a random direction gives on average

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def size_of(tensor: Tensor) -> float:
    """The typical value, by which steps are scaled."""
    if not tensor.numel():
        return 1e-2
    return max(float(tensor.detach().double().square().mean().sqrt()), 1e-2)


def jitter(tensors: list[Tensor], generator: torch.Generator) -> None:
    with torch.no_grad():
        for tensor in tensors:
            tensor.add_(drawn(tensor, generator) * (JITTER * size_of(tensor)))


def drawn(tensor: Tensor, generator: torch.Generator) -> Tensor:
    return torch.randn(tensor.shape, generator=generator, dtype=torch.float64).to(tensor.device)


def compared(
    tensor: Tensor,
    gradient: Tensor,
    direction: Tensor,
    value: Callable[[], float],
    tolerance: float,
    floor: float = 0.0,
) -> DerivativeComparison:
    """Compare `gradient` with finite differences of `value()`, moving `tensor`, which is restored.

    Slopes below `floor` count as zero.
    """
    size = size_of(tensor)
    told = float((gradient.double() * direction).sum()) * size
    typical = max(float(gradient.double().norm()) * size, floor)
    found: list[float] = []
    for step in STEPS:
        found.append(_slope(tensor, direction * size, step, value))
        error = _relative(told, found[-1], typical)
        if error <= tolerance:
            return DerivativeComparison(SAME, told, found[-1], error)
    settled = all(abs(f - found[-1]) <= 0.1 * abs(found[-1] - told) for f in found)
    return DerivativeComparison(WRONG if settled else UNSURE, told, found[-1], error)


def _slope(tensor: Tensor, move: Tensor, step: float, value: Callable[[], float]) -> float:
    start = tensor.detach().clone()
    ends: list[float] = []
    try:
        for sign in (1.0, -1.0):
            with torch.no_grad():
                tensor.copy_(start + sign * step * move)
            ends.append(value())
    finally:
        with torch.no_grad():
            tensor.copy_(start)
    return (ends[0] - ends[1]) / (2 * step)


def _relative(told: float, found: float, typical: float) -> float:
    scale = max(abs(told), abs(found), typical)
    if scale == 0.0:
        return 0.0
    gap = abs(told - found) / scale
    return gap if gap == gap else float("inf")
