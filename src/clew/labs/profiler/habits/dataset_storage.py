"""How datasets store their data: as Python lists of numbers, or as arrays wider than the network needs.

Looked at from outside: no sample is drawn and no code of the dataset runs.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch import Tensor

from clew.hooks.collect_loop.dataset_contents import innermost
from clew.records.facts.profile_facts import KeptDataFact

MANY = 256  # items from which on a list is data and not a setting
TRIED = 8  # items that are made into tensors to see how long that takes
LARGE = 1 << 16  # elements from which on an array's width matters


def kept_data(loaders: Mapping[int, weakref.ref[Any]]) -> list[KeptDataFact]:
    """The facts `profile.kept`: attributes of the datasets of these loaders."""
    found: list[KeptDataFact] = []
    for number, reference in loaders.items():
        loader = reference()
        dataset = innermost(loader.dataset) if loader is not None else None
        if hasattr(dataset, "__dict__"):
            found += [replace(entry, loader=number) for entry in _entries(dataset)]
    return found


def _entries(dataset: Any) -> Iterator[KeptDataFact]:
    for name, value in list(vars(dataset).items()):
        if type(value) is list and len(value) >= MANY:
            yield from _list(name, value)
        for position, array in enumerate(value) if isinstance(value, tuple) else ((-1, value),):
            if _is_wide(array):
                label = name if position < 0 else f"{name}[{position}]"
                yield KeptDataFact(attribute=label, of="float64", items=len(array), numbers=_size(array))


def _list(name: str, value: list[Any]) -> Iterator[KeptDataFact]:
    """A list of lists of numbers; one of single numbers is no worse than an array of them."""
    items = [value[n * (len(value) - 1) // (TRIED - 1)] for n in range(TRIED)]
    if not all(_is_numbers(item) for item in items):
        return
    began = perf_counter()
    try:
        tensors = [torch.tensor(item) for item in items]
    except (ValueError, TypeError):  # ragged further in
        return
    made = perf_counter()
    for tensor in tensors:
        tensor.clone()
    ended = perf_counter()
    yield KeptDataFact(
        attribute=name,
        of="list",
        items=len(value),
        numbers=int(np.mean([t.numel() for t in tensors])),
        seconds=(made - began) / TRIED,
        needed=(ended - made) / TRIED,
    )


def _is_numbers(item: Any) -> bool:
    """A Python list of numbers, or of such lists, all of the same length."""
    for _ in range(3):
        if type(item) is not list or not item:
            return False
        if all(type(one) in (int, float) for one in item):
            return True
        if not all(type(one) is list and len(one) == len(item[0]) for one in item):
            return False
        item = item[0]
    return False


def _is_wide(array: Any) -> bool:
    if type(array) is Tensor:
        return array.dtype is torch.float64 and array.dim() > 1 and array.numel() >= LARGE
    return type(array) is np.ndarray and array.dtype == np.float64 and array.ndim > 1 and array.size >= LARGE


def _size(array: Any) -> int:
    return int(array.numel() if isinstance(array, Tensor) else array.size)
