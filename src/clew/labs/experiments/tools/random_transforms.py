"""The random transforms of a dataset, found and switched off one by one on a copy."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_flatten

from clew.labs.snapshot.dataset_copy import DEPTH, Source, owned
from clew.labs.snapshot.sample_fields import column
from clew.measure.rng import seed_all

WORDS = ("transform", "aug")
NOT_OF_INPUTS = ("target", "label", "mask")
SEEDS = (11, 12, 13)  # under which a transform must differ from itself to be random


@dataclass
class Slot:
    """A place in a dataset that holds a transform, or a switch for them."""

    name: str
    value: Any
    put: Callable[[Any], None] = field(repr=False)


def is_random(origin: Source, indices: list[int]) -> bool:
    """Whether the same sample is another one under other random numbers."""
    return any(
        not _equal(origin.item(i, SEEDS[0]), origin.item(i, seed)) for i in indices for seed in SEEDS[1:]
    )


def without_random_transforms(origin: Source, indices: list[int]) -> tuple[Source, list[str]]:
    """The same source with the random transforms left out that can be, and their names."""
    plain = replace(origin, dataset=copy.deepcopy(origin.dataset))
    left_out: list[str] = []
    for slot in _slots(plain.dataset, type(plain.dataset).__name__, DEPTH, set()):
        if isinstance(slot.value, bool):
            off: Any = False
        elif _is_random_transform(slot, plain, indices[0]):
            off = _Same()
        else:
            continue
        before = plain.item(indices[0], SEEDS[0])
        slot.put(off)
        if _same_form(before, plain, indices[0]):
            left_out.append(slot.name)
        else:
            slot.put(slot.value)
    return plain, left_out


class _Same:
    """A transform that does nothing."""

    def __call__(self, *values: Any) -> Any:
        return values[0] if len(values) == 1 else values


class _Listening:
    """A transform that keeps what it was given."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.given: tuple[Any, ...] | None = None

    def __call__(self, *values: Any) -> Any:
        self.given = owned(values)
        return self._inner(*values)


def _is_random_transform(slot: Slot, plain: Source, index: int) -> bool:
    """Given the same, it gives something else under other random numbers."""
    listening = _Listening(slot.value)
    slot.put(listening)
    try:
        plain.item(index, SEEDS[0])
    finally:
        slot.put(slot.value)
    if listening.given is None:
        return False
    results = []
    for seed in SEEDS:
        seed_all(seed)
        results.append(owned(slot.value(*copy.deepcopy(listening.given))))
    return any(not _equal(results[0], other) for other in results[1:])


def _same_form(before: Any, plain: Source, index: int) -> bool:
    try:
        after = plain.item(index, SEEDS[0])
    except Exception:  # noqa: BLE001 - what follows in the user's code can't do without the transform
        return False
    one, other = tree_flatten(before), tree_flatten(after)
    return one[1] == other[1] and all(_kind(a) == _kind(b) for a, b in zip(one[0], other[0], strict=True))


def _kind(leaf: Any) -> Any:
    size = getattr(leaf, "size", None)  # of a picture of PIL's; a tensor has a method of that name
    shape = getattr(leaf, "shape", None if callable(size) else size)
    return type(leaf), shape, getattr(leaf, "dtype", None)


def _equal(a: Any, b: Any) -> bool:
    one, other = tree_flatten(a), tree_flatten(b)
    return one[1] == other[1] and all(_same_leaf(x, y) for x, y in zip(one[0], other[0], strict=True))


def _same_leaf(a: Any, b: Any) -> bool:
    one, other = column([a]), column([b])
    if one is None or other is None:
        pixels = getattr(a, "tobytes", None)  # a picture of PIL's
        return bool(pixels() == b.tobytes()) if callable(pixels) else type(a) is type(b)
    return one.shape == other.shape and torch.equal(one.nan_to_num(), other.nan_to_num())


def _slots(value: Any, name: str, depth: int, seen: set[int]) -> Iterator[Slot]:
    """Of a dataset and of those inside it; of a chain of transforms, each of them."""
    if depth < 0 or id(value) in seen or not isinstance(getattr(value, "__dict__", None), dict):
        return
    seen.add(id(value))
    for key, held in list(vars(value).items()):
        if key in ("dataset", "datasets"):
            inner = held if isinstance(held, (list, tuple)) else [held]
            for part in inner:
                yield from _slots(part, type(part).__name__, depth - 1, seen)
        elif any(word in key.lower() for word in WORDS) and not any(w in key.lower() for w in NOT_OF_INPUTS):
            yield from _chain(value, key, held, f"{name}.{key}")


def _chain(owner: Any, key: str, held: Any, name: str) -> Iterator[Slot]:
    steps = held if isinstance(held, list) else getattr(held, "transforms", None)
    if isinstance(held, nn.Sequential):
        held = steps = list(held)
        setattr(owner, key, _Chain(steps))
    if isinstance(steps, list):
        for n, step in enumerate(steps):
            yield Slot(_called(step), step, partial(steps.__setitem__, n))
    elif held is True or callable(held):
        yield Slot(name if held is True else _called(held), held, partial(setattr, owner, key))


class _Chain:
    """An `nn.Sequential` of transforms, whose steps can be exchanged."""

    def __init__(self, steps: list[Any]) -> None:
        self._steps = steps

    def __call__(self, value: Any) -> Any:
        for step in self._steps:
            value = step(value)
        return value


def _called(step: Any) -> str:
    return getattr(step, "__name__", None) or type(step).__name__
