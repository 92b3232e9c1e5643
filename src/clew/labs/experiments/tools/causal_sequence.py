"""Is a model meant to be causal, and which of its inputs is the sequence it goes along?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from clew.labs.snapshot.users_step.model_calls import ModelCall, sample_dim

NEXT, MASK, NAME = "the targets are the inputs moved by one", "it is given a causal mask", "its name"
LEAST = 4  # positions: with fewer there is no past and future to speak of
_NAMES = re.compile(r"gpt|causal|autoregress|(?<![a-zA-Z])lm(?![a-z])|LM$|language_?model", re.I)
_NOT_CAUSAL = re.compile(r"masked_?l|mlm|bert|denois|electra", re.I)
_ATTENTION = ("scaled_dot_product_attention", "multi_head_attention_forward")


@dataclass(frozen=True)
class Timeline:
    """A sequence that goes into a model: (samples, time) or (samples, time, features), or time first."""

    tensor: Tensor
    samples: int  # dimension
    time: int  # dimension
    why: str  # the model is meant to be causal on it

    @property
    def length(self) -> int:
        return int(self.tensor.shape[self.time])


def causal_sequence(call: ModelCall, count: int, targets: Iterable[Tensor], masked: bool) -> Timeline | None:
    """The input along which the model is meant to look back only; None if nothing says so."""
    found = list(_sequences(call, count))
    known = list(targets)
    for sequence in found:
        others = [t for t in (*known, *call.tensors()) if t is not sequence.tensor]
        if any(_is_next(t, sequence) for t in others):
            return sequence
    if len(found) != 1 or any(_is_same(t, found[0]) for t in known):
        return None
    names = [type(m).__name__ for m in call.module.modules() if not type(m).__module__.startswith("torch.")]
    names += [name for name, _ in call.module.named_modules()]
    if any(_NOT_CAUSAL.search(n) for n in names):
        return None
    if masked:
        return _because(found[0], MASK)
    return _because(found[0], NAME) if any(_NAMES.search(n) for n in names) else None


def _because(sequence: Timeline, why: str) -> Timeline:
    return Timeline(sequence.tensor, sequence.samples, sequence.time, why)


def _sequences(call: ModelCall, count: int) -> Iterator[Timeline]:
    for tensor in call.tensors():
        samples = sample_dim(tensor, count)
        tokens = tensor.dim() == 2 and tensor.dtype in (torch.int64, torch.int32)
        features = tensor.dim() == 3 and tensor.is_floating_point()
        if samples not in (0, 1) or not (tokens or features):
            continue
        time = 1 - samples
        if tensor.shape[time] >= LEAST:
            yield Timeline(tensor, samples, time, NEXT)


def _is_next(target: Tensor, sequence: Timeline) -> bool:
    """Whether a target holds at each place what the sequence holds at the next."""
    given = sequence.tensor.movedim(sequence.time, -1 if sequence.tensor.dim() == 2 else 1)
    cut = given[:, 1:]
    return any(
        _alike(t, c) and not _alike(t, s)
        for t, c, s in (*_layouts(target, cut, given[:, :-1]), *_longer(target, given))
    )


def _is_same(target: Tensor, sequence: Timeline) -> bool:
    given = sequence.tensor.movedim(sequence.time, -1 if sequence.tensor.dim() == 2 else 1)
    return any(_alike(t, c) for t, c, _ in _layouts(target, given, given))


def _layouts(target: Tensor, cut: Tensor, same: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """As it is, flattened, and both with time first."""
    for one, two in ((cut, same), (cut.transpose(0, 1), same.transpose(0, 1))):
        if target.numel() == one.numel():
            yield target.reshape(-1), one.reshape(-1), two.reshape(-1)


def _longer(target: Tensor, given: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """A target as long as the sequence itself: its last place is not to be seen in it."""
    for swapped in (False, True):
        shape = given.transpose(0, 1).shape if swapped else given.shape
        if target.numel() == given.numel():
            full = target.reshape(shape)
            full = full.transpose(0, 1) if swapped else full
            yield full[:, :-1].reshape(-1), given[:, 1:].reshape(-1), given[:, :-1].reshape(-1)


def _alike(target: Tensor, other: Tensor, share: float = 0.95) -> bool:
    """Equal nearly everywhere; negative labels are those that are to be ignored."""
    if target.is_floating_point() != other.is_floating_point():
        return False
    counted = torch.ones_like(target, dtype=torch.bool) if target.is_floating_point() else target >= 0
    if int(counted.sum()) < LEAST:
        return False
    return float((target == other)[counted].float().mean()) >= share


class CausalMasks(TorchFunctionMode):
    """Notices attention that is told to look back only."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__name__", "") in _ATTENTION and not self.seen:
            given = [kwargs.get("attn_mask"), *(a for a in args[3:] if isinstance(a, Tensor))]
            self.seen = bool(kwargs.get("is_causal")) or any(map(_hides_future, given))
        return func(*args, **kwargs)


def _hides_future(mask: Any) -> bool:
    """All above the diagonal is hidden, and nothing else of it is."""
    if not isinstance(mask, Tensor) or mask.dim() < 2 or mask.shape[-1] != mask.shape[-2]:
        return False
    table = mask.detach().reshape(-1, *mask.shape[-2:])[0]
    if len(table) < LEAST:
        return False
    above = torch.ones_like(table, dtype=torch.bool).triu(1)
    hidden = table if table.dtype == torch.bool else table <= -1e3
    return bool(torch.equal(hidden, above) or torch.equal(~hidden, above))


def has_causal_mask(call: ModelCall) -> bool:
    """Whether a causal mask is given to attention in this call."""
    masks = CausalMasks()
    with masks:
        call.again()
    return masks.seen
