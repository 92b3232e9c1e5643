"""FLOPs of one op, from torch's own counter; a multiply-add counts as two."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.flop_counter import flop_registry, sdpa_flop_count

from clew.labs.network.tensor_info import size_of

aten = torch.ops.aten


def flops_of(func: Any, args: Any, kwargs: Any, out: Any) -> int:
    """0 for ops that torch does not count: they are elementwise, or only move data."""
    packet = getattr(func, "_overloadpacket", None)
    formula = flop_registry.get(packet) or _MORE.get(packet)
    if formula is None:
        return 0
    try:
        return size_of(formula(*args, **kwargs, out_val=out))
    except (TypeError, ValueError, AssertionError, IndexError):
        return 0  # a variant of the op that torch's formula does not cover


def _recurrent(inputs: Any, w_ih: Any, w_hh: Any, *rest: Any, out_val: Any = None, **_: Any) -> int:
    """The fused recurrent layer on the CPU, which torch does not count: two products per position."""
    positions = inputs.numel() // max(inputs.shape[-1], 1)
    return int(2 * positions * (w_ih.numel() + w_hh.numel()))


def _attention(query: Any, key: Any, value: Any, *rest: Any, out_val: Any = None, **_: Any) -> int:
    return size_of(sdpa_flop_count(query.shape, key.shape, value.shape))


_MORE: dict[Any, Any] = {
    aten.mkldnn_rnn_layer: _recurrent,
    aten._scaled_dot_product_flash_attention_for_cpu: _attention,
}
