"""Reads a loader without changing the program: from a copy if possible, else all state is restored."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable, Iterator
from typing import Any

from clew.labs.loaders.dataset_stages import datasets_in
from clew.labs.snapshot.dataset_copy import copied
from clew.labs.snapshot.snapshot import snapshot
from clew.labs.snapshot.time_limit import CannotJudge

MOST_OWNERS = 64  # objects whose attributes are restored


def own_copy(parts: tuple[Any, ...]) -> tuple[tuple[Any, ...], str]:
    """A deep copy of dataset, samplers and collate together; or the originals, with the reason."""
    try:
        return copied(parts), ""
    except CannotJudge as reason:
        return parts, str(reason)


@contextlib.contextmanager
def loader_snapshot(owners: Iterable[Any]) -> Iterator[None]:
    """Restore random generators (including the owners'), attributes, output and warnings afterwards."""
    with snapshot(_unfolded(owners)):
        yield


def _unfolded(owners: Iterable[Any]) -> list[Any]:
    """The owners and anything in them that may have state: inner datasets, samplers, transforms."""
    found: dict[int, Any] = {}
    for owner in owners:
        for dataset, _ in datasets_in(owner):
            _add(found, dataset, 3)
    return [thing for thing in found.values() if isinstance(getattr(thing, "__dict__", None), dict)]


def _add(found: dict[int, Any], thing: Any, depth: int) -> None:
    if thing is None or id(thing) in found or len(found) >= MOST_OWNERS or isinstance(thing, type):
        return
    if isinstance(thing, functools.partial):
        thing = thing.func
    found[id(thing)] = thing
    inside = getattr(thing, "__dict__", None)
    for value in list(inside.values()) if isinstance(inside, dict) and depth else ():
        for part in value[:16] if isinstance(value, (list, tuple)) else (value,):
            if callable(part) or (hasattr(part, "__iter__") and type(part).__module__ not in _PLAIN):
                _add(found, part, depth - 1)


_PLAIN = ("builtins", "numpy", "torch", "collections", "pandas.core.frame", "pandas.core.series")
