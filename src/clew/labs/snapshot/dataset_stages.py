"""The stages a sample passes: nested datasets, their methods, transforms and functions, and collate.

Found by inspection, without reading a sample. Each stage can be replaced, so that
`following` can trace it; only on a copy, or where everything is restored.
"""

from __future__ import annotations

import contextlib
import inspect
import types
from collections.abc import Callable, Iterable, Iterator, MutableSequence, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from torch import nn
from torch.utils.data import Dataset, IterableDataset

from clew.hooks.collect_loop.dataset_contents import is_users_method, names_used
from clew.hooks.entry.user_line import USER, kind_of
from clew.labs.snapshot.module_state import own_generators
from clew.records.site import Line

DEPTH = 6  # of datasets inside datasets
NESTED = 3  # of transforms inside transforms
MOST_PARTS = 16  # of a ConcatDataset, or of a list of transforms
MOST_OWNERS = 64  # objects whose attributes are restored
PLAIN_MODULES = ("builtins", "numpy", "torch", "collections", "pandas.core.frame", "pandas.core.series")
INNER = ("dataset", "datasets")  # attributes with datasets that need not be torch's
RANDOM_WORDS = ("transform", "aug")  # in the names of transforms that may be random
WORDS = (*RANDOM_WORDS, "preprocess", "normali", "tokeni")
OF_TARGETS = ("target", "label", "mask")
ENTRIES = ("__getitem__", "__getitems__", "__iter__")
READ, METHOD, FUNCTION, CALL = "read", "method", "function", "call"
TRANSFORM, TARGET_TRANSFORM, COLLATE, SWITCH = "transform", "target transform", "collate", "switch"


@dataclass(frozen=True)
class DatasetStage:
    """One stage. `put(other)` replaces it with another callable; None where that is not possible."""

    name: str  # "RandomCrop", "Pets.load", "default_collate"
    kind: str  # READ: a dataset's own __getitem__ or __iter__; METHOD, FUNCTION, CALL, TRANSFORM, …
    value: Any = field(repr=False, compare=False)
    put: Callable[[Any], None] | None = field(default=None, repr=False, compare=False)
    file: str | None = None  # where it is defined, if in the user's own files
    line: int | None = None


def stages_of(dataset: Any, collate: Any) -> list[DatasetStage]:
    """All stages, datasets from the outermost inwards; collate, if any, last."""
    found: list[DatasetStage] = []
    for inner, put in datasets_in(dataset):
        place = written_at(getattr(type(inner), _entry_of(inner), None))
        found.append(DatasetStage(read_name(inner), READ, inner, put, *place))
        found += [*_methods(inner), *_transforms(inner), *_functions(inner)]
    if collate is not None:
        found.append(DatasetStage(_called(collate), COLLATE, collate, None, *written_at(collate)))
    return found


def datasets_in(
    dataset: Any, put: Callable[[Any], None] | None = None, depth: int = DEPTH
) -> Iterator[tuple[Any, Callable[[Any], None] | None]]:
    """The dataset and those nested in it (Subset, ConcatDataset, the user's own wrappers)."""
    if dataset is None:
        return
    yield dataset, put
    for key, value in _attributes(dataset).items() if depth > 0 else ():
        if _is_dataset(value):
            yield from datasets_in(value, partial(_set, dataset, key), depth - 1)
        elif isinstance(value, list) and value and all(_is_dataset(part) for part in value[:MOST_PARTS]):
            for n, part in enumerate(value[:MOST_PARTS]):
                yield from datasets_in(part, partial(value.__setitem__, n), depth - 1)
        elif key in INNER:
            for part in value[:MOST_PARTS] if isinstance(value, (list, tuple)) else (value,):
                if _is_like_dataset(part):
                    yield from datasets_in(part, None, depth - 1)


def state_owners(things: Iterable[Any]) -> list[Any]:
    """These and anything in them that may have state: inner datasets, samplers, transforms."""
    found: dict[int, Any] = {}
    for thing in things:
        for dataset, _ in datasets_in(thing):
            _add_owners(found, dataset, NESTED)
    return [owner for owner in found.values() if isinstance(getattr(owner, "__dict__", None), dict)]


def generators_in(dataset: Any) -> list[Any]:
    """The random generators of a dataset, its transforms and nested datasets."""
    return [generator for owner in state_owners([dataset]) for generator in own_generators(owner)]


def _add_owners(found: dict[int, Any], thing: Any, depth: int) -> None:
    if thing is None or id(thing) in found or len(found) >= MOST_OWNERS or isinstance(thing, type):
        return
    if isinstance(thing, partial):
        thing = thing.func
    found[id(thing)] = thing
    for value in _attributes(thing).values() if depth else ():
        for part in value[:MOST_PARTS] if isinstance(value, (list, tuple)) else (value,):
            if _may_have_state(part):
                _add_owners(found, part, depth - 1)


def _may_have_state(part: Any) -> bool:
    if callable(part) or (hasattr(part, "__iter__") and type(part).__module__ not in PLAIN_MODULES):
        return True
    return isinstance(getattr(part, "__dict__", None), dict) and bool(own_generators(part))


def _is_dataset(value: Any) -> bool:
    return isinstance(value, Dataset) and not isinstance(value, type)


def _is_like_dataset(value: Any) -> bool:
    """An object that can be read by index, of the user's or another library's class: it is not replaced."""
    by_index = hasattr(type(value), "__getitem__")
    return (
        by_index
        and isinstance(getattr(value, "__dict__", None), dict)
        and not isinstance(value, (nn.Module, type))
    )


def read_name(dataset: Any) -> str:
    """`Pets.__getitem__`."""
    return f"{type(dataset).__name__}.{_entry_of(dataset)}"


def _entry_of(dataset: Any) -> str:
    """The method by which it is read."""
    if isinstance(dataset, IterableDataset) or not hasattr(type(dataset), "__getitem__"):
        return "__iter__"
    return "__getitem__"


def _called(thing: Any) -> str:
    """A callable's name, in the user's words."""
    if isinstance(thing, partial):
        return _called(thing.func)
    name = getattr(thing, "__name__", None)
    return name if isinstance(name, str) else type(thing).__name__


def written_at(thing: Any) -> Line:
    """File and line of the user's callable, also inside a partial or a wrapper; nothing for others."""
    while isinstance(thing, partial):
        thing = thing.func
    with contextlib.suppress(ValueError):  # an object that claims to wrap itself
        thing = inspect.unwrap(thing)
    kind = type(thing)
    for candidate in (thing, *(getattr(kind, name, None) for name in ("__call__", "forward"))):
        code = getattr(getattr(candidate, "__func__", candidate), "__code__", None)
        if isinstance(code, types.CodeType):
            users = kind_of(code.co_filename) == USER
            return (code.co_filename, code.co_firstlineno) if users else (None, None)
    return None, None


def _names_read(dataset: Any) -> set[str]:
    """The names that reading a dataset uses."""
    return names_used(dataset, ENTRIES)


def _methods(dataset: Any) -> Iterator[DatasetStage]:
    if not isinstance(getattr(dataset, "__dict__", None), dict):
        return
    for name in _in_order(dataset):
        if is_users_method(dataset, name):
            bound = getattr(dataset, name)
            stage_name = f"{type(dataset).__name__}.{name}"
            yield DatasetStage(stage_name, METHOD, bound, partial(_shadow, dataset, name), *written_at(bound))


def _in_order(dataset: Any) -> list[str]:
    """The same names in the order of the code: the order of a set changes from run to run."""
    return sorted(_names_read(dataset), key=lambda name: (_first_line(dataset, name), name))


def _first_line(dataset: Any, name: str) -> int:
    code = getattr(getattr(type(dataset), name, None), "__code__", None)
    return code.co_firstlineno if isinstance(code, types.CodeType) else 0


def _transforms(dataset: Any) -> Iterator[DatasetStage]:
    """Attributes that are transforms by their name, or callables that reading uses."""
    used = _names_read(dataset)
    for key, value in _attributes(dataset).items():
        chained = _is_chain(value)
        if not (chained or _is_step(value)) or _is_dataset(value):
            continue
        if chained or any(word in key.lower() for word in WORDS):
            kind = TARGET_TRANSFORM if _is_of_targets(key) else TRANSFORM
            yield from _chain(value, kind, partial(_set, dataset, key), NESTED, key)
        elif key in used:
            yield DatasetStage(
                _named(value, key), CALL, value, partial(_set, dataset, key), *written_at(value)
            )


def _is_of_targets(key: str) -> bool:
    return any(word in key.lower() for word in OF_TARGETS)


def switches_of(dataset: Any) -> Iterator[DatasetStage]:
    """The attributes that switch random transforms of the inputs on, as stages whose value is True."""
    for inner, _ in datasets_in(dataset):
        for key, value in _attributes(inner).items():
            named = any(word in key.lower() for word in RANDOM_WORDS) and not _is_of_targets(key)
            if value is True and named:
                yield DatasetStage(f"{type(inner).__name__}.{key}", SWITCH, value, partial(_set, inner, key))


def _is_chain(value: Any) -> bool:
    """Callables applied in sequence, in a list or in an object like Compose."""
    steps = _steps_in(value)
    return bool(steps and all(map(_is_step, steps)))


def _steps_in(value: Any) -> Sequence[Any] | None:
    steps = value if isinstance(value, (list, tuple)) else getattr(value, "transforms", None)
    return steps if isinstance(steps, (list, tuple)) else None


def _is_step(step: Any) -> bool:
    return callable(step) and not isinstance(step, type)


def _chain(value: Any, kind: str, put: Callable[[Any], None], depth: int, key: str) -> Iterator[DatasetStage]:
    """The steps of a Compose-like object one by one; any other transform unchanged."""
    if isinstance(value, nn.Sequential):
        chain = Chain(value, put)
        yield from _steps(chain.steps, chain.put_step, kind, depth, key)
        return
    steps = _steps_in(value)
    if depth > 0 and steps is not None and all(callable(step) for step in steps):
        owner = None if steps is value else value
        yield from _steps(steps, _putter(steps, owner, put), kind, depth, key)
    elif callable(value):
        yield DatasetStage(_named(value, key), kind, value, put, *written_at(value))


def _steps(
    steps: Any, put_at: Callable[[int, Any], None], kind: str, depth: int, key: str
) -> Iterator[DatasetStage]:
    for n, step in enumerate(steps):
        yield from _chain(step, kind, partial(put_at, n), depth - 1, f"{key}[{n}]")


def _named(value: Any, key: str) -> str:
    """Its own name, or the name of its attribute if it has none."""
    name = _called(value)
    return key if name == "<lambda>" else name


def _putter(steps: Any, owner: Any, put: Callable[[Any], None]) -> Callable[[int, Any], None]:
    if isinstance(steps, MutableSequence):
        return steps.__setitem__
    changed = list(steps)

    def put_at(n: int, other: Any) -> None:
        changed[n] = other
        if owner is None:
            put(tuple(changed))
        else:
            _set(owner, "transforms", tuple(changed))

    return put_at


class Chain:
    """An `nn.Sequential` of transforms as a plain chain: a module's children can't be arbitrary callables."""

    def __init__(self, original: nn.Sequential, put: Callable[[Any], None]) -> None:
        self._original = original
        self.steps: list[Any] = list(original)
        self._put = put

    def put_step(self, n: int, other: Any) -> None:
        self.steps[n] = other
        whole = all(a is b for a, b in zip(self.steps, self._original, strict=True))
        self._put(self._original if whole else self)

    def __call__(self, value: Any) -> Any:
        for step in self.steps:
            value = step(value)
        return value


def _functions(dataset: Any) -> Iterator[DatasetStage]:
    """Functions of the user's modules that reading calls by name."""
    for entry in (*ENTRIES, *(n for n in _names_read(dataset) if is_users_method(dataset, n))):
        method = getattr(type(dataset), entry, None)
        code, scope = getattr(method, "__code__", None), getattr(method, "__globals__", None)
        if not isinstance(code, types.CodeType) or kind_of(code.co_filename) != USER or scope is None:
            continue
        for name in code.co_names:
            value = scope.get(name)
            if isinstance(value, types.FunctionType) and kind_of(value.__code__.co_filename) == USER:
                yield DatasetStage(
                    name, FUNCTION, value, partial(scope.__setitem__, name), *written_at(value)
                )


def _attributes(thing: Any) -> dict[str, Any]:
    own = getattr(thing, "__dict__", None)
    return dict(own) if isinstance(own, dict) else {}


def _set(owner: Any, key: str, value: Any) -> None:
    vars(owner)[key] = value  # bypasses the user's __setattr__


def _shadow(owner: Any, name: str, value: Any) -> None:
    """A method belongs to its class: an instance attribute shadows it, and is removed again."""
    if type(value) is types.MethodType:  # the original, not an object that stands in for it
        vars(owner).pop(name, None)
    else:
        vars(owner)[name] = value
