"""`clew.graph`: one forward as a graph of ops, in the modules that they ran in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn

from clew.api.forward_errors import explained
from clew.labs.network.network_graph import graph as traced_graph
from clew.records.network import Graph


def graph(
    target: nn.Module | Callable[..., Any],
    inputs: Any = None,
    *,
    dims: Any = None,
    dtype: Any = None,
    compute: bool | None = None,
) -> Graph:
    """The graph of one forward; inputs as for `summary`. A model that torch.export can't take is fine."""
    with explained():
        return traced_graph(target, inputs, dims=dims, dtype=dtype, compute=compute)
