"""Which layers compute in which number format: with autocast the parameters don't tell."""

from __future__ import annotations

import torch

from clew.hooks.entry.sink import Sink
from clew.records.facts.model_facts import PrecisionFact, PrecisionRow

Layer = tuple[str, str, str | None]  # root, path, function


class Precision:
    """Formats of outputs other than float32, sent once and again when they change."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._known: dict[Layer, torch.dtype] = {}
        self._news: dict[Layer, torch.dtype] = {}

    def seen(self, layer: Layer, dtype: torch.dtype) -> None:
        """A layer's output has this format."""
        if self._known.get(layer, torch.float32) is not dtype:
            self._known[layer] = self._news[layer] = dtype

    def commit(self, step: int) -> None:
        """Say what is new."""
        if self._news:
            items = tuple(_item(layer, dtype) for layer, dtype in self._news.items())
            self._news = {}
            PrecisionFact(items).write(self._sink, step)


def _item(layer: Layer, dtype: torch.dtype) -> PrecisionRow:
    root, path, op = layer
    return PrecisionRow(root, path, op, str(dtype).removeprefix("torch."))
