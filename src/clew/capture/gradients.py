"""The norm over all gradients of an optimizer, as cheap as it can be asked before every step."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from torch import Tensor

from clew.capture import stats
from clew.capture.addresses import Addresses
from clew.capture.values import UNREADABLE

AT_ONCE = 1 << 20  # elements that are read while other threads wait: a fraction of a millisecond


class GradientNorm:
    """Of a fixed set of parameters."""

    def __init__(self, parameters: Sequence[Tensor]) -> None:
        self.at = Addresses(parameters, gradients=True)
        self._at_once: Callable[[], float] | None = None
        self._readable = self.at.kernel is not None
        if self.at.natives is not None and sum(self.at.sizes) <= AT_ONCE:
            self._at_once = self.at.natives.function("find_sumsq", self.at.request)

    def __call__(self) -> float | Tensor | None:
        """2-norm over all gradients there are, None if it is not known: see `grad_norm`."""
        at_once = self._at_once
        try:
            total = at_once() if at_once else self._total()
            if 0.0 <= total < math.inf:
                return math.sqrt(total)
        except UNREADABLE:
            self._at_once, self._readable = None, False  # sparse, or without memory: the general way copes
        return stats.grad_norm([p.grad for p in self.at.parameters if p.grad is not None])

    def _total(self) -> float:
        """Sum of squares; below zero, or NaN, if it is for the general way to say."""
        kernel = self.at.kernel
        if kernel is None or not self._readable or not self.at.find():
            return -1.0
        return kernel.sumsq(*self.at.arrays, self.at.count)
