"""Batch statistics: inputs and targets of a sampled step."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from clew.hooks.collect_layers.step_rows import SiteRows
from clew.hooks.collect_layers.trained_models import Root
from clew.hooks.entry.sink import Sink
from clew.measure.deferred_values import Late
from clew.measure.nested_tensors import data_tensors, first_tensor
from clew.measure.readable_tensors import has_values, shape_of
from clew.measure.stats import STAT_NAMES
from clew.records import signals
from clew.records.site import Site

INPUT_NAMES = (*signals.INPUT.names, signals.INPUT_FEATURE_SPREAD.name)
FIRST_INPUT_NAMES = (*signals.FIRST_INPUT.names, signals.FIRST_INPUT_FEATURE_SPREAD.name)
TARGET_NAMES = (
    *signals.TARGET.names,
    signals.TARGET_CLASSES.name,
    signals.TARGET_TOP_SHARE.name,
    signals.TARGET_SWITCHES.name,
)
HASHED = 1 << 16  # elements of a batch that go into its content hash
LISTED = 1 << 14  # integer targets that are read: a segmentation map has millions
FIRST_LAYERS = (nn.Linear, nn.modules.conv._ConvNd, nn.RNNBase, nn.RNNCellBase, nn.Bilinear)


class Batches:
    """Measures the batch of a sampled step and writes it at the end of the step."""

    def __init__(self, sink: Sink, late: Late) -> None:
        self._late = late
        self._pending = SiteRows(sink, late)

    def inputs(self, root: Root, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """The arguments of the root module."""
        tensors = data_tensors((args, kwargs))
        for position, tensor in enumerate(tensors[:4]):
            if tensor.is_floating_point() and has_values(tensor):
                site = Site("", f"input[{position}]", phase="train", root=root.name)
                self._stats(INPUT_NAMES, site, tensor)
        if tensors:
            site = Site("", phase="train", root=root.name)
            self._pending.put([signals.BATCH_HASH.name], site, [content_hash(tensors[0])])

    def first_input(self, root: Root, path: str, args: tuple[Any, ...]) -> None:
        """The input of the first weighted layer, after any normalisation inside the model."""
        tensor = first_tensor(args)
        if tensor is not None and tensor.is_floating_point() and has_values(tensor):
            self._stats(FIRST_INPUT_NAMES, Site(path, phase="train", root=root.name), tensor)

    def targets(self, site: Site, target: Tensor) -> None:
        """The targets of a loss call."""
        if not has_values(target):
            return
        row = np.full(len(TARGET_NAMES), np.nan)
        self._late.stats(target, row)
        if not target.is_floating_point() and not target.is_complex():
            row[len(STAT_NAMES) :] = label_order(target)
        self._pending.put(TARGET_NAMES, site, row)

    def _stats(self, recorded: tuple[str, ...], site: Site, tensor: Tensor) -> None:
        row = np.full(len(recorded), np.nan)
        self._late.stats(tensor, row)
        row[len(STAT_NAMES)] = feature_spread(tensor)
        self._pending.put(recorded, site, row)

    def commit(self, step: int) -> None:
        self._pending.commit(step)

    def discard(self) -> None:
        self._pending.discard()


def batch_size(tensor: Tensor) -> int:
    return int(shape_of(tensor)[0]) if tensor.dim() else 1


def content_hash(tensor: Tensor) -> float:
    """48 bits of a batch's content, as a number that float64 represents exactly."""
    if not tensor.is_cpu or not has_values(tensor):
        return float("nan")
    flat = tensor.detach().resolve_conj().resolve_neg().reshape(-1)
    stride = max(flat.numel() // HASHED, 1)
    data = flat[::stride].contiguous().view(torch.uint8).numpy().tobytes()
    return float(zlib.crc32(data) | ((len(data) ^ zlib.adler32(data)) & 0xFFFF) << 32)


def feature_spread(tensor: Tensor) -> float:
    """Largest over median standard deviation of the columns of a table-like input."""
    if tensor.dim() != 2 or tensor.shape[0] < 2 or tensor.shape[1] < 2 or tensor.device.type != "cpu":
        return 1.0
    spread = tensor.detach()[:1024].float().std(0)
    spread = spread[spread > 0]
    return float(spread.max() / spread.median()) if spread.numel() else 1.0


def label_order(target: Tensor) -> tuple[float, float, float]:
    """Number of classes in the batch, share of the most frequent, share of neighbours that differ."""
    labels = target.detach().reshape(-1)[:LISTED]
    if labels.numel() < 2 or labels.device.type != "cpu":
        return float("nan"), float("nan"), float("nan")
    _, counts = labels.unique(return_counts=True)
    switches = (labels[1:] != labels[:-1]).float().mean()
    return float(len(counts)), float(counts.max()) / labels.numel(), float(switches)
