"""Random noise that the model scales by something it computed: `mu + scale * eps`.

Seen as function calls inside a sampled forward; tensors are only remembered weakly.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from clew.hooks.entry.user_line import user_line
from clew.measure.readable_tensors import has_values

DRAWN = {"randn_like", "randn", "normal", "normal_"}
MOVED = {"to", "cuda", "cpu", "type_as", "float", "double", "half"}
TIMES = {"mul", "mul_", "multiply", "__mul__", "__rmul__"}
PLUS = {"add", "add_", "__add__", "__radd__"}
NOISE_NAMES = DRAWN | MOVED | TIMES | PLUS | {"addcmul"}

Tell = Callable[[Tensor, tuple[str | None, int | None]], None]  # a scale, and the line that used it


class Noise:
    """Follows noise from where it is drawn, over its scale, to where it is added."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._drawn: list[weakref.ref[Tensor]] = []
        self._scaled: list[tuple[weakref.ref[Tensor], weakref.ref[Tensor], Any]] = []

    def begin(self) -> None:
        """A forward begins."""
        self._drawn, self._scaled = [], []

    def called(self, name: str, args: tuple[Any, ...], result: Any) -> None:
        """One of `NOISE_NAMES` returned."""
        if not isinstance(result, Tensor):
            return
        if name in DRAWN:
            self._drawn.append(weakref.ref(result))
        elif not self._drawn:
            return
        elif name in MOVED:
            if self._is_noise(args[0]) and result is not args[0]:
                self._drawn.append(weakref.ref(result))
        elif name == "addcmul" and len(args) >= 3:
            self._multiplied(args[1], args[2], result)
            self._added(args[0], result)
        elif name in TIMES and len(args) >= 2:
            self._multiplied(args[0], args[1], result)
        elif name in PLUS and len(args) >= 2:
            self._added(args[0], args[1])
            self._added(args[1], args[0])

    def _is_noise(self, value: Any) -> bool:
        return isinstance(value, Tensor) and any(ref() is value for ref in self._drawn)

    def _multiplied(self, one: Any, other: Any, result: Tensor) -> None:
        for noise, scale in ((one, other), (other, one)):
            if self._is_noise(noise) and computed(scale):
                self._scaled.append((weakref.ref(result), weakref.ref(scale), user_line()))
                return

    def _added(self, mean: Any, product: Any) -> None:
        """The scaled noise is added to something else that the model computed: a sample is drawn."""
        for ref, scale_ref, line in self._scaled:
            scale = scale_ref()
            if ref() is product and scale is not None and computed(mean) and mean is not scale:
                self._tell(scale, line)


def computed(value: Any) -> bool:
    """An output of the network; not a constant, and not a parameter as it is."""
    found = isinstance(value, Tensor) and value.grad_fn is not None and value.is_floating_point()
    return found and has_values(value)


def negative_share(scale: Tensor) -> Tensor:
    with torch.no_grad():
        return (scale.detach() < 0).float().mean()
