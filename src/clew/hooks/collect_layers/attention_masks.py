"""Attention and pooling masks: which keys they hide, compared with which tokens are padding.

Masks are read from function calls inside a sampled forward. Padding is known from an embedding's
`padding_idx`, or from zeros that occur only at the end of rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeGuard

import torch
from torch import Tensor

from clew.hooks.entry.user_line import user_line
from clew.measure.readable_tensors import has_values
from clew.records import signals
from clew.records.signal_types import names
from clew.records.site import Line

MASK_NAMES = {
    "embedding",
    "multi_head_attention_forward",
    "scaled_dot_product_attention",
    "masked_fill",
    "masked_fill_",
    "mul",
}
MASK_SIGNALS = names(
    signals.MASK_INVERTED,
    signals.MASK_PADDING,
    signals.MASK_EMPTY,
    signals.MASK_FUTURE_ONLY,
)
HIDES = -1e3  # filling a score with a value this low removes the element from a softmax
LEAST = 3  # positions: a smaller triangle shows nothing

Tell = Callable[[str, Tensor, Line], None]  # the function's name, the numbers of MASK_SIGNALS, the line


class Masks:
    """Compares every mask of a forward with the tokens that were embedded before it."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._padding: list[Tensor] = []

    def begin(self) -> None:
        """A forward begins."""
        self._padding = []

    def called(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """One of `MASK_NAMES` returned."""
        with torch.no_grad():
            if name == "embedding":
                self._embedded(args, kwargs)
                return
            for hidden in hidden_keys(name, args, kwargs):
                self._judge(name, hidden.detach())

    def _embedded(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        tokens = args[0] if args else None
        index = kwargs.get("padding_idx", args[2] if len(args) > 2 else None)
        if is_dense(tokens) and tokens.dim() == 2 and tokens.shape[1] >= LEAST:
            self._padding.append(padding_of(tokens, index))

    def _judge(self, name: str, hidden: Tensor) -> None:
        square = hidden.dim() == 2 and hidden.shape[0] == hidden.shape[1] >= LEAST
        known = [p for p in self._padding if p.shape == hidden.shape]
        if known:
            self._tell(name, against_padding(hidden, known[0]), user_line())
        elif square and name != "mul":
            numbers = hidden.new_full((4,), float("nan"), dtype=torch.float32)
            numbers[3] = future_only(hidden)
            self._tell(name, numbers, user_line())


def padding_of(tokens: Tensor, index: int | None) -> Tensor:
    """Where tokens are padding; nowhere, if nothing says so."""
    if index is not None and index >= 0:
        return tokens == index
    zeros = tokens == 0
    trailing = zeros.flip(1).cumprod(1).flip(1).bool()
    only_at_ends = (zeros == trailing).all() & (trailing.any(1).float().mean() > 0.5) & ~zeros.all()
    return trailing & only_at_ends


def hidden_keys(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Tensor]:
    """What a function hides: True where a key is hidden, as (samples, keys) or (queries, keys)."""
    if name == "multi_head_attention_forward":
        masks = [hiding(kwargs.get(n), True) for n in ("key_padding_mask", "attn_mask")]
    elif name == "scaled_dot_product_attention":
        masks = [hiding(kwargs.get("attn_mask", args[3] if len(args) > 3 else None), False)]
    elif name == "mul":
        masks = [kept_by_product(a) for a in args[:2]]
    else:
        scores = isinstance(args[0], Tensor) and args[0].requires_grad  # otherwise a mask is being built
        low = scores and fills_low(kwargs.get("value", args[2] if len(args) > 2 else None))
        masks = [hiding(kwargs.get("mask", args[1] if len(args) > 1 else None), True) if low else None]
    flat = [flattened(mask) for mask in masks if mask is not None]
    return [mask for mask in flat if mask is not None]


def hiding(mask: Any, true_hides: bool) -> Tensor | None:
    if not is_dense(mask) or mask.requires_grad:
        return None
    if mask.is_floating_point():
        return mask <= HIDES
    return mask.bool() if true_hides else ~mask.bool()


def kept_by_product(factor: Any) -> Tensor | None:
    """The (samples, positions, 1) zeros and ones that hidden states are multiplied by."""
    if not is_dense(factor) or factor.requires_grad or factor.dim() != 3 or factor.shape[2] != 1:
        return None
    return factor == 0


def is_dense(value: Any) -> TypeGuard[Tensor]:
    return isinstance(value, Tensor) and has_values(value)


def fills_low(value: Any) -> bool:
    return isinstance(value, (int, float)) and value <= HIDES


def flattened(mask: Tensor) -> Tensor | None:
    """Reduce to two axes: heads are alike, and a key is hidden if it is hidden from every query."""
    if mask.dim() == 4:
        mask = mask[:, 0]
    if mask.dim() == 3 and mask.shape[2] == 1:
        return mask[:, :, 0]
    if mask.dim() == 3 and mask.shape[0] == 1 and mask.shape[1] > 1:
        return mask[0]
    if mask.dim() == 3:
        return mask.all(1)
    return mask if mask.dim() == 2 else None


def against_padding(hidden: Tensor, padding: Tensor) -> Tensor:
    """Share of padded samples that hide exactly the real tokens; share of padding; rows without a key."""
    mixed = padding.any(1) & ~padding.all(1)
    rows = mixed.sum()
    opposite = ((hidden == ~padding).all(1) & mixed).sum() / rows
    empty = (hidden.all(1) & ~padding.all(1)).float().mean()
    nothing = torch.full_like(empty, float("nan"))
    return torch.stack([opposite.float(), padding.float().mean(), empty, nothing])


def future_only(hidden: Tensor) -> Tensor:
    """1 if every position hides all positions before it and none after it."""
    ones = torch.ones_like(hidden)
    past, future = ones.tril(-1), ones.triu(1)
    return ((hidden | ~past).all() & ~(hidden & future).any()).float()
