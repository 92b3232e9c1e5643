"""Finds which of a program's objects grow, what they keep references to, and which ones to blame.

Three surveys are compared. What grew in both intervals at about the same rate is examined. Tensors
with their graphs are always reported; anything else only if its bytes match the growth of the process,
and if nothing bounds it: a deque with a length, a list that is cut, a cache that fills up to the size of
the data.
"""

from __future__ import annotations

import ast
import linecache
import os
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from torch import Tensor

from clew.labs.profiler.memory.named_objects import (
    GRAPH,
    NODE,
    PYTHON,
    TENSOR,
    Holder,
    ObjectSurvey,
    container_kind,
    kept_items,
)
from clew.records.site import Line

LEAST_RATE = 0.1  # items, or nodes of a graph, in each step
ALIKE = 0.4  # of the faster interval's rate, that the slower one must have
EXPLAINS = 0.25  # share of the process's growth that makes an owner without graphs worth naming
MOST_FILES = 40
HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_REGISTERING = (
    "register_forward_hook",
    "register_forward_pre_hook",
    "register_full_backward_hook",
    "register_full_backward_pre_hook",
)
_ADDING = {"append", "extend", "insert", "add", "appendleft", "update", "setdefault"}
_REMOVING = {"pop", "popleft", "popitem", "clear", "remove", "discard"}


@dataclass(frozen=True)
class Owner:
    """Something that grows."""

    name: str
    container: str  # "list", "dict", "tensor", "forward hooks"
    kind: str  # GRAPH, TENSOR or PYTHON
    rate: float  # items or nodes a step
    size: float  # bytes a step, as far as visible
    file: str | None = None
    line: int | None = None

    def sentence(self) -> str:
        """`list `losses` in train.py:31: tensors with their graphs`."""
        place = f" in {os.path.basename(self.file)}:{self.line}" if self.file and self.line else ""
        kept = {GRAPH: "tensors with their graphs", TENSOR: "tensors", PYTHON: "objects"}[self.kind]
        if self.container == "tensor":
            kept = "its graph reaches back over all steps"
        elif self.container == "hooks":
            return f"hooks of `{self.name}`{place}: one more per step"
        return f"{self.container} `{self.name}`{place}: {kept}"


@dataclass(frozen=True)
class _Growing:
    holder: Holder
    rate: float


@dataclass(frozen=True)
class Blame:
    """The owner, if any; `harmless`: what grows is a buffer or a cache that will fill up."""

    owner: Owner | None = None
    harmless: bool = False


def owner_of_growth(surveys: Sequence[ObjectSurvey], slope: float | None, lengths: Sequence[int]) -> Blame:
    """The one to blame; `slope` is the process's, if clear, `lengths` are those of the datasets."""
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
    """Graphs first; containers before values computed from them; those with a line; the largest."""
    return owner.kind != GRAPH, owner.container == "tensor", owner.line is None, -owner.size


def grown(surveys: Sequence[ObjectSurvey]) -> list[_Growing]:
    """What existed in each survey and grew each time by about as much per step."""
    found = []
    for key, holder in surveys[-1].holders.items():
        seen = [survey.holders[key] for survey in surveys if key in survey.holders]
        if len(seen) < len(surveys):
            continue
        sizes = [one.size for one in seen]
        same = all(one.identity == holder.identity for one in seen)
        if not same and Tensor not in type(holder.value).__mro__:
            continue  # another container under the same name: it was re-created
        rates = [
            (after - before) / max(later.step - earlier.step, 1)
            for before, after, earlier, later in zip(sizes, sizes[1:], surveys, surveys[1:], strict=False)
        ]
        if min(rates) >= LEAST_RATE and min(rates) >= ALIKE * max(rates):
            found.append(_Growing(holder, (sizes[-1] - sizes[0]) / (surveys[-1].step - surveys[0].step)))
    return found


def _judged(one: _Growing, lengths: Sequence[int], files: Sequence[str]) -> tuple[Owner | None, bool]:
    """Who it is, and whether it is bounded."""
    holder = one.holder
    if Tensor in type(holder.value).__mro__:
        return _running_sum(one, files), False
    attribute = holder.name.text.rpartition(".")[2]
    if attribute in HOOKS:
        return _hooks(one, attribute, files), False
    kind, size = kept_items(holder.value)
    places = places_of(holder, files)
    limited = any(found.limited for _, found in places)
    built_in = container_kind(holder.value)
    container = built_in.__name__ if built_in is not None else ""
    file, line = _first(places, "added", holder)
    owner = Owner(_said(holder.name.text), container, kind, one.rate, size * one.rate, file, line)
    if container == "deque" and vars(deque)["maxlen"].__get__(holder.value) is not None:
        return replace(owner, kind=PYTHON), True  # it releases what it keeps
    return owner, limited or _bounded_by_data(one, container, lengths)


def _said(name: str) -> str:
    return name.replace("`", "")


def _running_sum(one: _Growing, files: Sequence[str]) -> Owner | None:
    """A tensor whose graph grows: only if the source adds to it, else it is computed from such a sum."""
    places = places_of(one.holder, files)
    if not any(found.summed for _, found in places):
        return None
    file, line = _first(places, "summed", one.holder)
    return Owner(_said(one.holder.name.text), "tensor", GRAPH, one.rate, NODE * one.rate, file, line)


def _hooks(one: _Growing, attribute: str, files: Sequence[str]) -> Owner:
    """A hook that is registered repeatedly."""
    file = line = None
    for path in files:
        lines = calls_of(path, _REGISTERING)
        if lines:
            file, line = path, lines[0]
            break
    module = one.holder.name.text.removesuffix("." + attribute)
    return Owner(_said(module), "hooks", PYTHON, one.rate, NODE * one.rate, file, line)


# -- what bounds it --


def _bounded_by_data(one: _Growing, container: str, lengths: Sequence[int]) -> bool:
    """A cache of samples that is not yet full: in a dataset, by their keys, or several per step."""
    owner, size = one.holder.name.owner, one.holder.size
    kind = type(owner)
    if owner is not None and _has(kind, "__getitem__") and _has(kind, "__len__"):
        return True
    may_be_cache = container in ("dict", "set") or one.rate >= 2.0
    return may_be_cache and (not lengths or size <= max(lengths))


def _has(kind: type, method: str) -> bool:
    return any(method in vars(base) for base in kind.__mro__)


# -- where --


def places_of(holder: Holder, files: Sequence[str]) -> list[tuple[str, Mentions]]:
    """What the user's files do with the name: the file with the variable first."""
    first = holder.name.file
    local = bool(holder.name.function) and "." not in holder.name.text
    listed = [first] if first is not None and local else [*([first] if first else []), *files]
    return [(file, mentions(file, holder.name.text)) for file in dict.fromkeys(listed)]


def _first(places: list[tuple[str, Mentions]], which: str, holder: Holder) -> Line:
    """The place where it is added to; if there is none, only the file."""
    for file, found in places:
        lines = getattr(found, which)
        if lines:
            return file, lines[0]
    return holder.name.file, None


# -- lines that make an object grow: `losses.append(loss)`, `total += loss`, `kept[key] = value` --


@dataclass(frozen=True)
class Mentions:
    """Lines of one file."""

    added: tuple[int, ...] = ()  # something is added
    summed: tuple[int, ...] = ()  # added to itself
    limited: bool = False  # something is removed, or the length is read


@dataclass(frozen=True)
class Target:
    """What is searched for: its last name and the subscripts after that."""

    name: str
    subscripts: tuple[str, ...] = ()

    @classmethod
    def of(cls, text: str) -> Target:
        """For a name such as `self.history['loss']`."""
        head, *rest = text.replace("`", "").split("[")
        return cls(head.rpartition(".")[2], tuple(part.rstrip("]") for part in rest))

    def is_at(self, node: ast.AST) -> bool:
        """Whether an expression is this; a computed subscript may be any."""
        subscripts: list[str | None] = []
        while isinstance(node, ast.Subscript):
            constant = node.slice.value if isinstance(node.slice, ast.Constant) else None
            subscripts.insert(0, None if constant is None else repr(constant))
            node = node.value
        named = (
            node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        )
        if named != self.name or len(subscripts) != len(self.subscripts):
            return False
        return all(s is None or s == own for s, own in zip(subscripts, self.subscripts, strict=True))


def mentions(file: str, name: str) -> Mentions:
    """What a file does with a name."""
    tree = _parsed(file)
    if tree is None:
        return Mentions()
    target = Target.of(name)
    added, summed, limited = [], [], False
    for node in ast.walk(tree):
        if _adds(node, target):
            added.append(node.lineno)  # type: ignore[attr-defined]
        elif _sums(node, target):
            summed.append(node.lineno)  # type: ignore[attr-defined]
        elif _limits(node, target):
            limited = True
    return Mentions(tuple(sorted(added)), tuple(sorted(summed)), limited)


def calls_of(file: str, methods: tuple[str, ...]) -> tuple[int, ...]:
    """Lines on which one of these methods is called."""
    tree = _parsed(file)
    nodes = ast.walk(tree) if tree is not None else ()
    return tuple(
        sorted(
            node.lineno
            for node in nodes
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in methods
        )
    )


@lru_cache(maxsize=64)
def _parsed(file: str) -> ast.Module | None:
    text = "".join(linecache.getlines(file))
    if not text or len(text) > 2_000_000:
        return None
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None


def _adds(node: ast.AST, target: Target) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in _ADDING and target.is_at(node.func.value)
    if isinstance(node, ast.Assign):
        return any(isinstance(t, ast.Subscript) and target.is_at(t.value) for t in node.targets)
    if isinstance(node, ast.AugAssign):
        listed = isinstance(node.value, (ast.List, ast.ListComp, ast.Tuple))
        return listed and target.is_at(node.target)
    return False


def _sums(node: ast.AST, target: Target) -> bool:
    """`total += loss`, and `total = total + loss`."""
    if isinstance(node, ast.AugAssign):
        return target.is_at(node.target)
    if isinstance(node, ast.Assign):
        within = any(target.is_at(part) for part in ast.walk(node.value))
        return within and any(target.is_at(part) for one in node.targets for part in _parts(one))
    return False


def _parts(target: ast.AST) -> list[ast.expr]:
    if isinstance(target, (ast.Tuple, ast.List)):
        return list(target.elts)
    return [target] if isinstance(target, ast.expr) else []


def _limits(node: ast.AST, target: Target) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in _REMOVING and target.is_at(node.func.value)
    if isinstance(node, ast.Delete):
        return any(isinstance(t, ast.Subscript) and target.is_at(t.value) for t in node.targets)
    if isinstance(node, (ast.If, ast.While, ast.IfExp)):
        return any(_is_length(part, target) for part in ast.walk(node.test))
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript):  # kept = kept[-100:]
        return isinstance(node.value.slice, ast.Slice) and target.is_at(node.value.value)
    return False


def _is_length(node: ast.AST, target: Target) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id != "len":
        return False
    return any(target.is_at(argument) for argument in node.args)
