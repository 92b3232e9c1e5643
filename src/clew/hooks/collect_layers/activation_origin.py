"""The activation that a tensor came out of, read from the names in its autograd graph.

Reads only node names and plain numbers saved in nodes, never a saved tensor: accessing one could recompute a
checkpointed part of the model.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from torch import Tensor

DEEPEST = 12  # nodes followed from the loss's input

# These move, select or cast values without changing them.
_MOVES = {
    "View", "UnsafeView", "ReshapeAlias", "Squeeze", "Unsqueeze", "Transpose", "T", "Permute", "Slice",
    "Select", "Index", "Clone", "Alias", "ToCopy", "Expand", "Narrow", "AsStrided", "_DDPSink",
    "IndexSelect", "Gather", "Unbind", "Split", "SplitWithSizes",
}  # fmt: skip
_MADE = {
    "Sigmoid": "sigmoid",
    "Relu": "relu",
    "Tanh": "tanh",
    "Softmax": "softmax",
    "LogSoftmax": "log_softmax",
    "LogSigmoid": "logsigmoid",
    "Hardsigmoid": "hardsigmoid",
    "Softplus": "softplus",
    "Exp": "exp",
}
_PICKS = {"Slice", "Select", "Index", "Narrow", "IndexSelect", "Gather", "Unbind", "Split", "SplitWithSizes"}


@dataclass(frozen=True)
class Origin:
    """The activation at the end of a model, what was applied to it since, and the axis of a softmax."""

    name: str  # "sigmoid", "clamp", …; "" if it is none of these
    dim: int | None = None  # of a softmax, as the program gave it; negative values count from the end
    logged: bool = False  # a logarithm was applied since
    clamped: bool = False
    picked: bool = False  # only a part of it is left

    def limits(self) -> tuple[float, float]:
        """The range of values that it can take."""
        if self.logged:
            return float("-inf"), float("inf")
        if self.name in ("sigmoid", "softmax", "hardsigmoid"):
            return 0.0, 1.0
        if self.name == "tanh":
            return -1.0, 1.0
        return (0.0 if self.name in ("relu", "softplus", "exp") else float("-inf")), float("inf")


def origin_of(tensor: Tensor) -> Origin:
    """Follow a tensor back through views and casts to the activation that computed its values."""
    node: Any = tensor.grad_fn
    logged = clamped = picked = False
    for _ in range(DEEPEST):
        kind = node_kind(node)
        if kind in _MADE:
            return Origin(_MADE[kind], softmax_dim(node, kind), logged, clamped, picked)
        if kind == "Log":
            logged = True
        elif kind == "Clamp" or (kind == "Add" and logged and _one_sided(node)):
            clamped = clamped or kind == "Clamp"  # as in log(p + eps), which is what a clamp is for
        elif kind not in _MOVES:
            break
        picked = picked or kind in _PICKS
        node = next((child for child, _ in node.next_functions if child is not None), None)
    return Origin("clamp" if clamped else "", None, logged, clamped, picked)


def node_kind(node: Any) -> str:
    """`Softmax` for a SoftmaxBackward0; an empty string for a leaf."""
    return "" if node is None else re.sub(r"Backward\d*$", "", type(node).__name__)


def softmax_dim(node: Any, kind: str) -> int | None:
    """The axis of a softmax; torch stores negative axes as unsigned numbers."""
    if kind not in ("Softmax", "LogSoftmax"):
        return None
    dim = int(node._saved_dim)
    return dim - (1 << 64) if dim >= 1 << 63 else dim


def _one_sided(node: Any) -> bool:
    return sum(child is not None for child, _ in node.next_functions) == 1
