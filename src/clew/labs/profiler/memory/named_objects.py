"""The named objects of a program and their sizes; comparing two surveys shows what grows.

Variables of the user's running functions and modules, attributes of their objects and of
the models, and what those reference in turn. No method of any object is called: lengths come from the
built-in types below a user's class, and attributes are read where they are stored.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from time import thread_time
from types import CellType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from clew.hooks.entry.user_line import HIDDEN, USER, kind_of

MOST_VISITED = 20_000  # objects
MOST_SECONDS = 0.25  # of the processor
DEEPEST = 5  # names from a variable to a container
SMALL = 64  # items of a container that are examined
MOST_NODES = 20_000  # of autograd graphs, in all
LAST = 8  # items of a growing container that are examined
NODE = 400  # bytes of a node of a graph whose tensors have been freed, about
GRAPH, TENSOR, PYTHON = "graph", "tensor", "python"  # what a container keeps
_OPTIMIZED = 0x1  # of a function, whose variables are not in a dict
_CONTAINERS: tuple[type, ...] = (list, dict, set, deque)
_ATOMIC = (str, bytes, int, float, bool, complex, type(None), range, slice)


@dataclass(frozen=True)
class Name:
    """The user's name for it: `losses`, `self.cache`, `history['loss']`."""

    text: str
    file: str | None = None  # file of the function or module that has the variable
    function: str = ""  # "" for a module's variable
    owner: Any = None  # the object that has it as attribute


@dataclass(frozen=True)
class Holder:
    """A container, or a tensor with a graph, and its size."""

    name: Name
    identity: int
    size: int  # items of a container, nodes of a graph
    value: Any = None  # only in the last survey of a round: nothing is kept alive until the next


@dataclass
class ObjectSurvey:
    """Everything found at one moment, by identity of name."""

    step: int
    holders: dict[tuple[str, str | None, str], Holder] = field(default_factory=dict)
    files: tuple[str, ...] = ()  # the user's, those of running functions first


def take_survey(
    step: int, frame: FrameType | None, roots: Iterable[tuple[str, nn.Module]], keep: bool = False
) -> ObjectSurvey:
    """Survey what the running functions, the user's modules and the models reference.

    With `keep`, the objects found are kept alive with their names until the survey is released.
    """
    walk = _Walk(ObjectSurvey(step), thread_time() + MOST_SECONDS, keep)
    for root, module in roots:
        walk.start(Name(f"`{root}`", owner=module), module)
    modules = user_modules(frame)
    walk.survey.files = tuple(modules)
    for name, value in (*variables(frame), *globals_of(modules)):
        walk.start(name, value)
    with torch._C.DisableTorchFunction():  # a subclass of Tensor may do anything here
        walk.go()
    return walk.survey


# -- variables --


def user_modules(frame: FrameType | None) -> dict[str, dict[str, Any]]:
    """The variables of the user's modules by file, those of running functions first."""
    modules: dict[str, dict[str, Any]] = {}
    while frame is not None:
        if kind_of(frame.f_code.co_filename) == USER:
            modules.setdefault(frame.f_code.co_filename, frame.f_globals)
        frame = frame.f_back
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None) if type(module) is ModuleType else None
        if isinstance(file, str) and kind_of(file) == USER:
            modules.setdefault(file, vars(module))
    return modules


def globals_of(modules: dict[str, dict[str, Any]]) -> Iterator[tuple[Name, Any]]:
    for file, names in modules.items():
        for name, value in list(names.items()):
            if not name.startswith("__"):
                yield Name(name, file), value


def variables(frame: FrameType | None) -> Iterator[tuple[Name, Any]]:
    """Of the user's running functions, innermost first; not while a debugger is using them."""
    if sys.gettrace() is not None:
        return
    while frame is not None:
        code = frame.f_code
        if kind_of(code.co_filename) == USER and code.co_flags & _OPTIMIZED:
            yield from locals_of(frame)
        frame = frame.f_back


def locals_of(frame: FrameType) -> list[tuple[Name, Any]]:
    """Read once, and not kept: before 3.13 reading leaves a copy in the frame that keeps everything alive."""
    code = frame.f_code
    values = frame.f_locals
    found = [(Name(name, code.co_filename, code.co_name), value) for name, value in list(values.items())]
    if sys.version_info < (3, 13) and type(values) is dict and sys.getrefcount(values) <= 3:
        values.clear()  # nobody else has this copy
    return found


# -- what they reference --


class _Walk:
    """Breadth first, so that the shortest name of an object is found."""

    def __init__(self, survey: ObjectSurvey, deadline: float, keep: bool) -> None:
        self.survey = survey
        self._keep = keep
        self._deadline = deadline
        self._seen: set[int] = set()
        self._queue: deque[tuple[Name, Any, int]] = deque()
        self._nodes = MOST_NODES

    def start(self, name: Name, value: Any) -> None:
        if type(value) not in _ATOMIC:
            self._queue.append((name, value, 0))

    def go(self) -> None:
        while self._queue:
            if len(self._seen) > MOST_VISITED or thread_time() > self._deadline:
                return
            name, value, depth = self._queue.popleft()
            if id(value) not in self._seen:
                self._seen.add(id(value))
                with suppress(Exception):  # an object may do anything when it is inspected
                    self._visit(name, value, depth)

    def _visit(self, name: Name, value: Any, depth: int) -> None:
        kind = container_kind(value)
        if kind is not None:
            self._note(name, value, length(value, kind))
            children = _items(name, value, kind)
        elif Tensor in type(value).__mro__:
            if _has_graph(value):
                size = graph_size(value, self._nodes)
                self._nodes -= size
                self._note(name, value, size)
            return
        else:
            children = attributes(name, value)
        if depth < DEEPEST:
            self._queue += [(n, v, depth + 1) for n, v in children if type(v) not in _ATOMIC]

    def _note(self, name: Name, value: Any, size: int) -> None:
        key = (name.text, name.file, name.function)
        if not self._keep:
            name = replace(name, owner=None)
        self.survey.holders.setdefault(key, Holder(name, id(value), size, value if self._keep else None))


def container_kind(value: Any) -> type | None:
    """The built-in container type of a value, or its built-in base type."""
    return next((kind for kind in type(value).__mro__ if kind in _CONTAINERS), None)


def length(value: Any, kind: type) -> int:
    """The length according to the built-in type, not to the user's class."""
    counted: int = kind.__dict__["__len__"](value)
    return counted


def _items(name: Name, value: Any, kind: type) -> list[tuple[Name, Any]]:
    """The contents of a small container: `history['loss']`, `parts[0]`."""
    if length(value, kind) > SMALL or kind is set:
        return []
    if kind is dict:
        pairs = [(f"{name.text}[{key!r}]", one) for key, one in dict.items(value) if type(key) in (str, int)]
    else:
        iterate: Any = kind.__dict__["__iter__"]
        pairs = [(f"{name.text}[{place}]", one) for place, one in enumerate(iterate(value))]
    return [(Name(text, name.file, name.function, name.owner), one) for text, one in pairs]


def attributes(name: Name, value: Any) -> list[tuple[Name, Any]]:
    """What is stored in a user object, a module, a function's closure or its defaults."""
    kind = type(value)
    if kind is FunctionType:
        return _of_function(name, value)
    if kind is MethodType:
        return [(Name(name.text, name.file, name.function), value.__self__)]
    if kind is CellType:
        return []
    if not (is_inspected(kind) or nn.Module in kind.__mro__):
        return []
    try:
        stored = object.__getattribute__(value, "__dict__")
    except Exception:  # noqa: BLE001 - a class may do anything there
        return []
    if type(stored) is not dict:
        return []
    found = []
    for attribute, one in list(stored.items()):
        if attribute == "_modules" and type(one) is dict:
            found += [(Name(f"{name.text}.{m}", name.file, name.function, v), v) for m, v in one.items()]
        else:
            found.append((Name(f"{name.text}.{attribute}", name.file, name.function, value), one))
    return found


def _of_function(name: Name, function: FunctionType) -> list[tuple[Name, Any]]:
    """Closures and mutable defaults of the user's functions: where hooks put things."""
    code = function.__code__
    if kind_of(code.co_filename) != USER:
        return []
    found: list[tuple[Name, Any]] = []
    for free, cell in zip(code.co_freevars, function.__closure__ or (), strict=False):
        try:
            found.append((Name(free, code.co_filename, code.co_name), cell.cell_contents))
        except ValueError:  # not assigned yet
            continue
    given = function.__defaults__ or ()
    names = code.co_varnames[: code.co_argcount][-len(given) :] if given else ()
    found += [(Name(n, code.co_filename, code.co_name), v) for n, v in zip(names, given, strict=False)]
    return found


def is_inspected(kind: type) -> bool:
    """The user's classes (in a file, a notebook, or dynamic) and those of packages other than torch."""
    name = kind.__module__
    module = sys.modules.get(name) if isinstance(name, str) else None
    file = getattr(module, "__file__", None)
    if isinstance(file, str):
        return kind_of(file) != HIDDEN
    return module is None or name == "__main__"


# -- graphs --


def _has_graph(tensor: Any) -> bool:
    try:
        return tensor.grad_fn is not None
    except Exception:  # noqa: BLE001 - a subclass may do anything there
        return False


def graph_size(tensor: Any, most: int) -> int:
    """Nodes of the autograd graph that a tensor keeps alive; counting stops at `most`."""
    waiting, seen = [tensor.grad_fn], {tensor.grad_fn}
    while waiting and len(seen) < most:
        for node, _ in waiting.pop().next_functions:
            if node is not None and node not in seen:
                seen.add(node)
                waiting.append(node)
    return len(seen)


# -- what a container keeps --


def kept_items(value: Any) -> tuple[str, float]:
    """The kind of the last items, and the bytes of one of them."""
    tensors, size, items = [], 0.0, 0
    for item in _last_items(value):
        items += 1
        inside = list(islice(_parts(item, 2), 16))
        tensors += [part for part in inside if Tensor in type(part).__mro__]
        size += sum(_bytes(part) for part in inside)
    if any(_has_graph(tensor) for tensor in tensors):
        nodes = [graph_size(t, 500) for t in tensors if _has_graph(t)]
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
    """An item, or the contents of a tuple, list or dict."""
    kind = type(item)
    if depth and kind in (tuple, list, dict):
        for part in islice(item.values() if kind is dict else item, 16):
            yield from _parts(part, depth - 1)
    else:
        yield item


def _bytes(part: Any) -> float:
    try:
        if Tensor in type(part).__mro__:
            return float(part.untyped_storage().nbytes())
        if type(part) is np.ndarray:
            return float(part.nbytes if part.base is None else part.base.nbytes)
        return float(object.__sizeof__(part))
    except Exception:  # noqa: BLE001 - what can't be asked counts nothing
        return 0.0
