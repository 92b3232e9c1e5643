"""Calls of functions inside a sampled forward that draw noise or apply attention masks."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from clew.hooks.collect_layers.attention_masks import MASK_NAMES, MASK_SIGNALS, Masks
from clew.hooks.collect_layers.step_rows import SiteRows
from clew.hooks.collect_layers.trained_models import ModelBook, Root
from clew.hooks.entry.sink import Sink
from clew.hooks.entry.user_line import user_line
from clew.measure.deferred_values import Late
from clew.measure.readable_tensors import has_values
from clew.records import signals
from clew.records.site import Line, Site

DRAWN = {"randn_like", "randn", "normal", "normal_"}
MOVED = {"to", "cuda", "cpu", "type_as", "float", "double", "half"}
TIMES = {"mul", "mul_", "multiply", "__mul__", "__rmul__"}
PLUS = {"add", "add_", "__add__", "__radd__"}
NOISE_NAMES = DRAWN | MOVED | TIMES | PLUS | {"addcmul"}
Tell = Callable[[Tensor, Line], None]  # a scale, and the line that used it


class Noise:
    """Follows noise from where it is drawn, through its scaling, to where it is added."""

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
    """Whether this is an output of the network: not a constant, and not a bare parameter."""
    found = isinstance(value, Tensor) and value.grad_fn is not None and value.is_floating_point()
    return found and has_values(value)


def negative_share(scale: Tensor) -> Tensor:
    with torch.no_grad():
        return (scale.detach() < 0).float().mean()


NAMES = frozenset(MASK_NAMES | NOISE_NAMES)
MOST_ROWS = 64  # per step: a recurrent loop may make the same call hundreds of times


class FunctionCalls:
    """Passes calls on to the classes that handle them, and records their results."""

    def __init__(self, sink: Sink, late: Late, models: ModelBook) -> None:
        self._late = late
        self._models = models
        self._pending = SiteRows(sink, late)
        self._noise = Noise(self._noise_scaled)
        self._masks = Masks(self._masked)
        self._place: tuple[Root, nn.Module] | None = None
        self._rows = 0

    def begin(self) -> None:
        """A sampled forward begins."""
        self._noise.begin()
        self._masks.begin()

    def called(
        self, root: Root, module: nn.Module, name: str, args: Any, kwargs: dict[str, Any], result: Any
    ) -> None:
        """One of `NAMES` returned inside this module."""
        self._place = (root, module)
        if name in NOISE_NAMES:
            self._noise.called(name, args, result)
        if name in MASK_NAMES:
            self._masks.called(name, args, kwargs)

    def _noise_scaled(self, scale: Tensor, line: Line) -> None:
        self._put((signals.NOISE_NEGATIVE.name,), "noise", negative_share(scale).reshape(1), line)

    def _masked(self, name: str, numbers: Tensor, line: Line) -> None:
        self._put(MASK_SIGNALS, name, numbers, line)

    def _put(self, recorded: tuple[str, ...], op: str, values: Tensor, line: Line) -> None:
        if self._place is None or self._rows >= MOST_ROWS:
            return
        self._rows += 1
        root, module = self._place
        path = self._models.path_of(root, module)
        site = Site(path, op, line[0], line[1], phase="train", root=root.name)
        self._pending.put(recorded, site, self._late.row(values))

    def commit(self, step: int) -> None:
        self._rows = 0
        self._pending.commit(step)

    def discard(self) -> None:
        self._rows = 0
        self._pending.discard()
