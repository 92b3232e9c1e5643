"""Whether an iterable dataset gives each worker a part of its own: if not, all deliver the same samples."""

from __future__ import annotations

from collections.abc import Iterator
from types import CodeType
from typing import Any

from torch.utils.data import IterableDataset

from clew.hooks.entry.user_line import USER, kind_of

DEPTH = 3  # of functions that call each other
SHARDING = "get_worker_info"
SPLIT_HINT = (
    "the dataset does not split itself among workers (torch.utils.data.get_worker_info): "
    "with more than one worker, every sample would be read more than once"
)


def splits_itself(dataset: Any, loader: Any = None) -> bool:
    """Whether an iterable dataset asks which worker it is in, or may be told by the program's own
    `worker_init_fn`. Code that is not the user's is trusted."""
    entry = getattr(type(dataset), "__iter__", None)
    code = getattr(entry, "__code__", None)
    if code is None or kind_of(code.co_filename) != USER or getattr(loader, "worker_init_fn", None):
        return True
    inner = [
        value for value in getattr(dataset, "__dict__", {}).values() if isinstance(value, IterableDataset)
    ]
    return _asks(entry, type(dataset), DEPTH) or any(splits_itself(value) for value in inner)


def _asks(function: Any, owner: type, depth: int) -> bool:
    """Whether a function of the user's, or one that it calls by name, asks for the worker."""
    code = getattr(function, "__code__", None)
    if code is None or depth < 0 or kind_of(code.co_filename) != USER:
        return False
    names = {name for part in _codes(code) for name in part.co_names}
    called = [function.__globals__.get(name) or getattr(owner, name, None) for name in names]
    return SHARDING in names or any(_asks(one, owner, depth - 1) for one in called if one is not function)


def _codes(code: CodeType) -> Iterator[CodeType]:
    """With those of functions inside it."""
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _codes(inner)
