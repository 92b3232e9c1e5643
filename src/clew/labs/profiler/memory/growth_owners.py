"""Finds which of a program's objects grow, what they keep references to, and which ones to blame.

Three surveys are compared. What grew in both intervals at about the same rate is looked into. Tensors
with their graphs are always worth a word; anything else only if its bytes are what the process grows by,
and if nothing bounds it: a deque with a length, a list that is cut, a cache that fills up to the size of
the data.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
from torch import Tensor

from clew.labs.profiler.memory.named_objects import Holder, ObjectSurvey, container_kind, graph_size
from clew.labs.profiler.memory.source_mentions import Mentions, calls_of, mentions

LEAST_RATE = 0.1  # items, or nodes of a graph, in each step
ALIKE = 0.4  # of the faster interval's rate, that the slower one must have
LAST = 8  # items that are looked at
NODE = 400  # bytes of a node of a graph whose tensors have been freed, about
EXPLAINS = 0.25  # of the process's growth, to be named for it without graphs
MOST_FILES = 40
HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_REGISTERING = (
    "register_forward_hook",
    "register_forward_pre_hook",
    "register_full_backward_hook",
    "register_full_backward_pre_hook",
)
GRAPH, TENSOR, PYTHON = "graph", "tensor", "python"


@dataclass(frozen=True)
class Owner:
    """Something that grows."""

    name: str
    container: str  # "list", "dict", "tensor", "forward hooks"
    kind: str  # GRAPH, TENSOR or PYTHON
    rate: float  # items or nodes a step
    size: float  # bytes a step, of what can be seen
    file: str | None = None
    line: int | None = None

    def sentence(self) -> str:
        """`list `losses` in train.py:31: tensors with their graphs`."""
        place = f" in {os.path.basename(self.file)}:{self.line}" if self.file and self.line else ""
        held = {GRAPH: "tensors with their graphs", TENSOR: "tensors", PYTHON: "objects"}[self.kind]
        if self.container == "tensor":
            held = "its graph reaches back over all steps"
        elif self.container == "hooks":
            return f"hooks of `{self.name}`{place}: one more per step"
        return f"{self.container} `{self.name}`{place}: {held}"


@dataclass(frozen=True)
class _Growing:
    holder: Holder
    rate: float


@dataclass(frozen=True)
class Blame:
    """Who it is, if anybody; `harmless`: what grows is a buffer or a cache that will be full one day."""

    owner: Owner | None = None
    harmless: bool = False


def owner_of_growth(surveys: Sequence[ObjectSurvey], slope: float | None, lengths: Sequence[int]) -> Blame:
    """The one to blame; `slope` is the process's, if that is clear, `lengths` those of the datasets."""
    owners, harmless = [], False
    for one in grown(surveys):
        owner, bounded = _judged(one, lengths, surveys[-1].files[:MOST_FILES])
        if owner is None:
            continue
        explains = slope is not None and owner.size >= EXPLAINS * slope
        if owner.kind == GRAPH or owner.container == "hooks" or (explains and not bounded):
            owners.append(owner)
        harmless |= explains and bounded
    owners.sort(key=_order)
    return Blame(owners[0]) if owners else Blame(None, harmless)


def _order(owner: Owner) -> tuple[Any, ...]:
    """Graphs first; containers before what is computed from them; those with a line; the largest."""
    return owner.kind != GRAPH, owner.container == "tensor", owner.line is None, -owner.size


def grown(surveys: Sequence[ObjectSurvey]) -> list[_Growing]:
    """What was there each time, and larger each time by as much for a step."""
    found = []
    for key, holder in surveys[-1].holders.items():
        before = [survey.holders.get(key) for survey in surveys]
        if any(one is None for one in before):
            continue
        sizes = [one.size for one in before if one is not None]
        same = all(one is not None and one.identity == holder.identity for one in before)
        if not same and Tensor not in type(holder.value).__mro__:
            continue  # another container under the same name: it is made anew
        rates = [
            (after - before) / max(later.step - earlier.step, 1)
            for before, after, earlier, later in zip(sizes, sizes[1:], surveys, surveys[1:], strict=False)
        ]
        if min(rates) >= LEAST_RATE and min(rates) >= ALIKE * max(rates):
            found.append(_Growing(holder, (sizes[-1] - sizes[0]) / (surveys[-1].step - surveys[0].step)))
    return found


def _judged(one: _Growing, lengths: Sequence[int], files: Sequence[str]) -> tuple[Owner | None, bool]:
    """Who it is, and whether something bounds it."""
    holder = one.holder
    if Tensor in type(holder.value).__mro__:
        return _running_sum(one, files), False
    attribute = holder.name.text.rpartition(".")[2]
    if attribute in HOOKS:
        return _hooks(one, attribute, files), False
    kind, size = _held(holder.value)
    found, places = places_of(holder, files)
    built_in = container_kind(holder.value)
    container = built_in.__name__ if built_in is not None else ""
    file, line = _first(places, "added", holder)
    owner = Owner(_said(holder.name.text), container, kind, one.rate, size * one.rate, file, line)
    if container == "deque" and vars(deque)["maxlen"].__get__(holder.value) is not None:
        return replace(owner, kind=PYTHON), True  # whatever it holds, it lets go of it
    return owner, found.limited or _bounded_by_data(one, container, lengths)


def _said(name: str) -> str:
    return name.replace("`", "")


def _running_sum(one: _Growing, files: Sequence[str]) -> Owner | None:
    """A tensor whose graph grows: only where the source adds to it, else it is a result of such a one."""
    found, places = places_of(one.holder, files)
    if not found.summed:
        return None
    file, line = _first(places, "summed", one.holder)
    return Owner(_said(one.holder.name.text), "tensor", GRAPH, one.rate, NODE * one.rate, file, line)


def _hooks(one: _Growing, attribute: str, files: Sequence[str]) -> Owner:
    """A hook that is registered again and again."""
    file = line = None
    for path in files:
        lines = calls_of(path, _REGISTERING)
        if lines:
            file, line = path, lines[0]
            break
    module = one.holder.name.text.removesuffix("." + attribute)
    return Owner(_said(module), "hooks", PYTHON, one.rate, NODE * one.rate, file, line)


# -- what it holds --


def _held(value: Any) -> tuple[str, float]:
    """Kind of the last items, and the bytes of one of them."""
    tensors, size, items = [], 0.0, 0
    for item in _last_items(value):
        items += 1
        inside = list(islice(_parts(item, 2), 16))
        tensors += [part for part in inside if Tensor in type(part).__mro__]
        size += sum(_bytes(part) for part in inside)
    if any(_graph(tensor) is not None for tensor in tensors):
        nodes = [graph_size(t, 500) for t in tensors if _graph(t) is not None]
        return GRAPH, (size + NODE * sum(nodes)) / max(items, 1)
    return (TENSOR if tensors else PYTHON), size / max(items, 1)


def _last_items(value: Any) -> list[Any]:
    kind = container_kind(value)
    if kind is list:
        return list.__getitem__(value, slice(-LAST, None))
    if kind is dict:
        return list(islice(reversed(dict.values(value)), LAST))
    if kind is deque:
        return list(islice(deque.__reversed__(value), LAST))
    return list(islice(set.__iter__(value), LAST))


def _parts(item: Any, depth: int) -> Iterator[Any]:
    """An item, or what is in it if it is a tuple, list or dict."""
    kind = type(item)
    if depth and kind in (tuple, list, dict):
        for part in islice(item.values() if kind is dict else item, 16):
            yield from _parts(part, depth - 1)
    else:
        yield item


def _graph(tensor: Any) -> Any:
    try:
        return tensor.grad_fn
    except Exception:  # noqa: BLE001 - a subclass may do anything there
        return None


def _bytes(part: Any) -> float:
    try:
        if Tensor in type(part).__mro__:
            return float(part.untyped_storage().nbytes())
        if type(part) is np.ndarray:
            return float(part.nbytes if part.base is None else part.base.nbytes)
        return float(object.__sizeof__(part))
    except Exception:  # noqa: BLE001 - what can't be asked counts nothing
        return 0.0


# -- what bounds it --


def _bounded_by_data(one: _Growing, container: str, lengths: Sequence[int]) -> bool:
    """A cache of samples: kept by a dataset, or by their keys, or several in each step; and not yet full."""
    owner, size = one.holder.name.owner, one.holder.size
    kind = type(owner)
    if owner is not None and _has(kind, "__getitem__") and _has(kind, "__len__"):
        return True
    may_be_cache = container in ("dict", "set") or one.rate >= 2.0
    return may_be_cache and (not lengths or size <= max(lengths))


def _has(kind: type, method: str) -> bool:
    return any(method in vars(base) for base in kind.__mro__)


# -- where --


def places_of(holder: Holder, files: Sequence[str]) -> tuple[Mentions, list[tuple[str, Mentions]]]:
    """What the user's files do with the name: the file that has the variable first."""
    first = holder.name.file
    local = bool(holder.name.function) and "." not in holder.name.text
    listed = [first] if first is not None and local else [*([first] if first else []), *files]
    places = [(file, mentions(file, holder.name.text)) for file in dict.fromkeys(listed)]
    whole = Mentions(
        tuple(line for _, found in places for line in found.added),
        tuple(line for _, found in places for line in found.summed),
        any(found.limited for _, found in places),
    )
    return whole, places


def _first(places: list[tuple[str, Mentions]], which: str, holder: Holder) -> tuple[str | None, int | None]:
    """The place at which it is added to; where there are none, the file alone."""
    pick: Callable[[Mentions], tuple[int, ...]] = lambda found: getattr(found, which)  # noqa: E731
    for file, found in places:
        if pick(found):
            return file, pick(found)[0]
    return holder.name.file, None
