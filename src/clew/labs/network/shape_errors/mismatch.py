"""A mismatch in words: what was expected and what was given. Shared by all explanations of shape errors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd


@dataclass(frozen=True)
class Mismatch:
    """In words that stand by themselves; no suggestion unless it is certain to help."""

    kind: str
    expected: str
    given: str
    suggestion: str = ""


@dataclass(frozen=True)
class Maker:
    """The layer that produced the failing layer's input."""

    path: str
    module: nn.Module

    @property
    def puts_out(self) -> int | None:
        """The number of output features the layer declares."""
        if isinstance(self.module, nn.Linear):
            return self.module.out_features
        if isinstance(self.module, _ConvNd):
            return self.module.out_channels
        if isinstance(self.module, nn.Embedding):
            return self.module.embedding_dim
        return None


def sizes_text(sizes: Iterable[int]) -> str:
    return "×".join(map(str, sizes)) or "scalar"


def shape_text(tensor: Tensor) -> str:
    return sizes_text(tensor.shape)


def last_size_source(size: int, before: Maker | None) -> str:
    """Where the last size comes from; empty if unknown, or if the features are in another dimension."""
    if before is None:
        return ""
    return f": {before.path} before it outputs {size}" if before.puts_out in (None, size) else ""


def channels_source(size: int, x: Tensor, before: Maker | None) -> str:
    """Where the channels come from; the whole shape if the layer's channels may be elsewhere."""
    if before is None:
        return ""
    made = str(size) if before.puts_out == size else shape_text(x)
    return f": {before.path} before it outputs {made}"


def corrected_input(wanted: int | str, before: Maker | None) -> str:
    """What would give the layer the size that it wants; without a layer before it, the program does."""
    return f"have it output {wanted}" if before is not None else f"pass it {wanted}"
