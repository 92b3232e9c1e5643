"""Gradient norm over all parameters of an optimizer, cheap enough to compute before every step."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from torch import Tensor

from clew.measure import stats
from clew.measure.kernel.addresses import Addresses

AT_ONCE = 1 << 20  # elements that are read while other threads wait: a fraction of a millisecond


class GradientNorm:
    """The gradient norm of a fixed set of parameters."""

    def __init__(self, parameters: Sequence[Tensor]) -> None:
        self.at = Addresses(parameters, gradients=True)
        # The norm, or a negative number if the kernel cannot compute it; used only if that takes a moment.
        self.at_once: Callable[[], float] | None = None
        if self.at.natives is not None and sum(self.at.sizes) <= AT_ONCE:
            self.at_once = self.at.natives.function("find_norm", self.at.request)

    def __call__(self) -> float | Tensor | None:
        """2-norm over all existing gradients, None if it is not known: see `grad_norm`."""
        norm = self.at_once() if self.at_once is not None else self._by_kernel()
        if 0.0 <= norm < math.inf:
            return norm
        return stats.grad_norm([p.grad for p in self.at.parameters if p.grad is not None])

    def _by_kernel(self) -> float:
        kernel = self.at.kernel
        if kernel is None or not self.at.find():
            return -1.0
        return math.sqrt(kernel.sumsq(*self.at.arrays, self.at.count))
