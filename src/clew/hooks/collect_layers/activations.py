"""Activation statistics: outputs of layers and activation functions in a sampled training forward."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from clew.hooks.collect_layers.layer_histograms import Histograms
from clew.hooks.collect_layers.step_rows import StepMatrix
from clew.hooks.collect_layers.trained_models import ModelBook, Root
from clew.hooks.entry.sink import Sink
from clew.measure.deferred_values import Late
from clew.measure.nested_tensors import first_tensor
from clew.records import signals
from clew.records.facts.model_facts import PrecisionFact, PrecisionRow
from clew.records.site import Site

Layer = tuple[str, str, str | None]  # root, path, function

SHARES = (signals.ACTIVATION_DEAD_FRACTION, signals.ACTIVATION_SATURATED)  # after the statistics in a row

# Activation functions whose units can die, and the flat ends of those that saturate. An end is flat where the
# slope is below a twentieth of its maximum: sigmoid 0.25, tanh 1.
_INF = math.inf
_RELU_LIKE = {"relu", "relu_", "relu6", "threshold", "threshold_"}
_FLAT_ENDS = {
    "sigmoid": (0.0125, 0.9875),
    "sigmoid_": (0.0125, 0.9875),
    "tanh": (-0.975, 0.975),
    "tanh_": (-0.975, 0.975),
    "hardtanh": (-1.0, 1.0),
    "hardsigmoid": (0.0, 1.0),
}
WATCHED = _RELU_LIKE | set(_FLAT_ENDS)
_UNKNOWN = (-1, "")

# Layers that only move or drop values: their statistics are those of their input.
_PASSIVE = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.Identity, nn.Flatten)


class Activations:
    """Outputs of modules and activation functions in the training forward of a sampled step."""

    def __init__(self, sink: Sink, models: ModelBook, late: Late, histograms: Histograms) -> None:
        self._models = models
        self._histograms = histograms
        self._rows = StepMatrix(sink, late, signals.ACTIVATION, *SHARES, shares=True)
        self._precision = Precision(sink)
        self._last = ""  # path of the layer that returned last

    def module_output(self, root: Root, module: nn.Module, output: Any) -> None:
        """A module inside the root module has returned."""
        path = self._models.path_of(root, module) or ""
        tensor = first_tensor(output)
        if tensor is None:
            return
        root.rows[id(module)] = None
        if isinstance(module, _PASSIVE):
            return
        if module._modules and not isinstance(module, nn.MultiheadAttention):
            return  # a container: its last layer has the same output
        root.order[path] = None
        if type(module).__name__.lower() in WATCHED:
            return  # handled as a function call, which knows its units
        self._last = path
        key = (root.name, path, None)
        self._measure(key, tensor, lambda: Site(path, None, phase="train", root=root.name))
        root.rows[id(module)] = (self._rows.slot(key, Site), path)
        if type(module).__module__.startswith("torch.nn."):
            root.quiet.add(id(module))

    def known_output(self, root: Root, module: nn.Module, output: Any) -> None:
        """Same as `module_output` for a layer that has been measured before, by the fastest path."""
        row = root.rows.get(id(module), _UNKNOWN)
        if row is None:
            return
        if row is not _UNKNOWN and self._rows.measure_again(row[0], output):
            self._last = row[1]
        else:
            self.module_output(root, module, output)

    def function_output(self, root: Root, enclosing: nn.Module, name: str, output: Any) -> None:
        """An activation function was called; it is named after the layer that ran before it."""
        if not isinstance(output, Tensor):
            return
        root.functional = True
        path = self._last if enclosing._modules else self._models.path_of(root, enclosing) or ""
        name = name.rstrip("_")
        key = (root.name, path, name)
        known = None if self._rows.histograms else self._rows.known(key)
        if known is not None and self._rows.measure_again(known, output):
            return
        counts_units = name in _RELU_LIKE and output.dim() >= 2
        self._measure(
            key,
            output,
            lambda: Site(path, name, phase="train", root=root.name),
            *_FLAT_ENDS.get(name, (-_INF, _INF)),
            unit_dim=unit_axis(enclosing, output) if counts_units else None,
        )

    def _measure(
        self,
        key: Any,
        tensor: Tensor,
        site: Callable[[], Site],
        lo: float = -_INF,
        hi: float = _INF,
        unit_dim: int | None = None,
    ) -> None:
        self._rows.measure(self._rows.slot(key, site), tensor, lo, hi, unit_dim)
        if self._histograms.wanted:
            self._histograms.seen("activation", key, site, tensor)
        self._precision.seen(key, tensor.dtype)

    def prepare(self, everything: bool) -> None:
        """Set what the step that begins now must measure."""
        self._rows.take_histograms(everything)

    def commit(self, step: int) -> None:
        self._rows.commit(step)
        self._precision.commit(step)

    def discard(self) -> None:
        """The forward led to no update: an evaluation without `no_grad`."""
        self._rows.discard()
        self._histograms.discard("activation")


def unit_axis(enclosing: nn.Module, output: Tensor) -> int:
    """Which axis counts units: channels of an image-like tensor, otherwise the last axis (features)."""
    if output.dim() == 4:
        return 1
    if output.dim() == 3 and _works_on_channels(enclosing):
        return 1
    return output.dim() - 1


def _works_on_channels(module: nn.Module) -> bool:
    return any(isinstance(m, (nn.Conv1d, nn.BatchNorm1d, nn.ConvTranspose1d)) for m in module.modules())


class Precision:
    """Dtypes of outputs other than float32, reported once and again when they change."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._known: dict[Layer, torch.dtype] = {}
        self._news: dict[Layer, torch.dtype] = {}

    def seen(self, layer: Layer, dtype: torch.dtype) -> None:
        """A layer's output has this dtype."""
        if self._known.get(layer, torch.float32) is not dtype:
            self._known[layer] = self._news[layer] = dtype

    def commit(self, step: int) -> None:
        """Report what is new."""
        if self._news:
            items = tuple(_item(layer, dtype) for layer, dtype in self._news.items())
            self._news = {}
            PrecisionFact(items).write(self._sink, step)


def _item(layer: Layer, dtype: torch.dtype) -> PrecisionRow:
    root, path, op = layer
    return PrecisionRow(root, path, op, str(dtype).removeprefix("torch."))
