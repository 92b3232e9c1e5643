"""Running statistics of pretrained weights, compared with the data that arrives at their first BatchNorm.

Loaded running statistics describe the data that the weights were trained on. They are compared in the first
forwards, before they adapt.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from clew.hooks.collect_layers.trained_models import ModelBook, Root
from clew.hooks.entry.guard import Guard
from clew.hooks.entry.sink import Sink, SiteTables
from clew.measure.readable_tensors import has_values
from clew.records import signals
from clew.records.signal_types import names
from clew.records.site import Site

FORWARDS = 3  # of each model that are compared: with the default momentum, statistics adapt in about ten
FEWEST = 16  # values per channel needed for a mean
SIGNALS = names(
    signals.PRETRAINED_SHIFT,
    signals.PRETRAINED_SCALE,
)
NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


class Pretrained:
    """Reads the first BatchNorm of models that were loaded."""

    def __init__(self, sink: Sink, models: ModelBook, guard: Guard, step: Callable[[], int]) -> None:
        self._sink = sink
        self._models = models
        self._guard = guard
        self._step = step
        self._forwards: dict[int, int] = {}
        self._tables = SiteTables(sink)
        self._compared = guard.inner("pretrained", self._compare)
        self.root: Root | None = None  # whose first BatchNorm we wait for

    def forward_began(self, root: Root) -> None:
        """A root module runs; matters only the first few times, and only if weights were loaded."""
        self.root = None
        done = self._forwards.get(root.index, 0)
        if self._models.loaded and done < FORWARDS and "pretrained" not in self._guard.off:
            self._forwards[root.index] = done + 1
            self.root = root

    def module_entered(self, module: nn.Module, value: object) -> None:
        """The root module's first BatchNorm is about to run on this value."""
        if not isinstance(module, NORMS) or self.root is None:
            return
        root, self.root = self.root, None
        self._compared(root, module, value)

    def _compare(self, root: Root, module: nn.modules.batchnorm._BatchNorm, value: object) -> None:
        mean, var = module.running_mean, module.running_var
        if (
            mean is None
            or var is None
            or not isinstance(value, Tensor)
            or not value.is_cpu
            or not has_values(value)
            or not mean.is_cpu
        ):
            return
        if module.weight is None or not self._models.was_loaded(module.weight) or is_fresh(mean, var):
            return
        found = distance(value.detach(), mean, var, module.eps)
        if found is None:
            return
        site = Site(self._models.path_of(root, module) or "", phase="train", root=root.name)
        self._sink.row(self._tables.table(SIGNALS, site), self._step(), np.array(found))


def is_fresh(mean: Tensor, var: Tensor) -> bool:
    """Whether these are the statistics of a layer that has never seen any data."""
    return bool((mean == 0).all()) and bool((var == 1).all())


def distance(value: Tensor, mean: Tensor, var: Tensor, eps: float) -> tuple[float, float] | None:
    """How far channels lie from where they were, in standard deviations, and how much wider they are."""
    channels = value.transpose(0, 1).reshape(value.shape[1], -1).float()
    if channels.shape[1] < FEWEST:
        return None
    expected = (var.detach().float() + eps).sqrt()
    shift = ((channels.mean(1) - mean.detach().float()) / expected).abs().median()
    scale = (channels.std(1) / expected).median()
    return float(shift), float(torch.clamp(scale, min=1e-12))
