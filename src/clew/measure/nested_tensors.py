"""Tensors in nested values: tuples, lists, dicts, dataclasses, packed sequences and pytrees.

`parts` returns what is inside a container: Python's own, those that torch's pytree knows, and mappings and
dataclasses, which pytree does not know. Hooks call this on every step and must run no code of the program's,
such as that of a lazy mapping or a registered container: `data_tensors` and `first_tensor` look only into
tuples, lists, dicts and dataclasses.

This text is part of the `rebuild.py` in every repro folder, so it must not import Clew.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from typing import Any

from torch import Tensor
from torch.nn.utils.rnn import PackedSequence
from torch.utils._pytree import SUPPORTED_NODES

DEEPEST = 8  # levels of nesting that are walked: a list may contain itself
_ATOMS = frozenset({type(None), bool, int, float, complex, str, bytes})  # these contain nothing
_NOTHING: tuple[Any, ...] = ()

Kinds = type | tuple[type, ...]


def tensors_in(value: Any, depth: int = DEEPEST) -> list[Tensor]:
    """All tensors of a nested value, in order."""
    if isinstance(value, Tensor):
        return [value]
    found: list[Tensor] = []
    _collect(value, Tensor, depth, found, parts)
    return found


def data_tensors(value: Any) -> list[Tensor]:
    """For hooks: the tensors that contain data; of a packed sequence not its lengths and order."""
    if isinstance(value, Tensor):
        return [value]
    found: list[Tensor] = []
    _collect(value, Tensor, DEEPEST, found, _data_parts)
    return found


def first_tensor(value: Any) -> Tensor | None:
    """For hooks: the first of `data_tensors`; stops there."""
    if isinstance(value, Tensor):
        return value
    return _first(value, DEEPEST)


def instances_in(value: Any, kinds: Kinds, depth: int = DEEPEST) -> list[Any]:
    """Same as `tensors_in` for values of other types, such as numpy arrays."""
    if isinstance(value, kinds):
        return [value]
    found: list[Any] = []
    _collect(value, kinds, depth, found, parts)
    return found


def _collect(value: Any, kinds: Kinds, depth: int, found: list[Any], inside: Callable[[Any], Any]) -> None:
    """Collects into a list: nested generators cost several times as much."""
    for part in inside(value) if depth else _NOTHING:
        if isinstance(part, kinds):
            found.append(part)
        elif type(part) not in _ATOMS:
            _collect(part, kinds, depth - 1, found, inside)


def _first(value: Any, depth: int) -> Tensor | None:
    for part in _data_parts(value) if depth else _NOTHING:
        if isinstance(part, Tensor):
            return part
        if type(part) not in _ATOMS:
            tensor = _first(part, depth - 1)
            if tensor is not None:
                return tensor
    return None


def parts(value: Any) -> Iterable[Any]:
    """The direct contents of a container; nothing for any other value."""
    kind = type(value)
    if kind is tuple or kind is list:  # first, because the check for a Mapping takes longer than all others
        return value  # type: ignore[no-any-return]  # as its type says
    if kind is dict:
        return value.values()  # type: ignore[no-any-return]  # as its type says
    known = SUPPORTED_NODES.get(kind)
    if known is not None:
        return known.flatten_fn(value)[0]
    return value.values() if isinstance(value, Mapping) else _data_parts(value, whole=True)


def _data_parts(value: Any, *, whole: bool = False) -> Iterable[Any]:
    """Same as `parts`, without containers that run the program's code.

    `whole`: return all parts of a packed sequence.
    """
    kind = type(value)
    if kind is tuple or kind is list:
        return value  # type: ignore[no-any-return]  # as its type says
    if isinstance(value, dict):
        return value.values()
    if isinstance(value, (tuple, list)):
        return (value.data,) if isinstance(value, PackedSequence) and not whole else value
    return [part for _, part in _fields(value)] if _is_dataclass(value) else _NOTHING


def _is_dataclass(value: Any) -> bool:
    return hasattr(type(value), "__dataclass_fields__")


def _fields(value: Any) -> list[tuple[str, Any]]:
    return [(field.name, getattr(value, field.name, None)) for field in dataclasses.fields(value)]


# -- with names --


def named_parts(value: Any) -> Iterable[tuple[Any, Any]]:
    """The direct contents of a container, each with its key, field name or index."""
    if isinstance(value, Mapping):
        return value.items()
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return zip(value._fields, value, strict=True)
    if _is_dataclass(value) and not isinstance(value, (list, tuple)):
        return _fields(value)
    return enumerate(parts(value))


def dotted(_: Any, key: Any) -> str:
    """How a part is written for a reader: `batch.images[0]`."""
    return f"[{key}]" if type(key) is int else f".{key}"


def named_tensors(
    label: str,
    value: Any,
    *,
    write: Callable[[Any, Any], str] = dotted,
    depth: int = DEEPEST,
    most: int | None = None,
) -> Iterator[tuple[str, Tensor]]:
    """All tensors of a nested value in the order of `tensors_in`, with their paths.

    `write` returns the text for a container and a key in it; containers of more than `most` parts are left
    out.
    """
    if isinstance(value, Tensor):
        yield label, value
        return
    inside = list(named_parts(value)) if depth else []
    for key, part in inside if most is None or len(inside) <= most else ():
        if type(part) not in _ATOMS:
            inner = f"{label}{write(value, key)}"
            yield from named_tensors(inner, part, write=write, depth=depth - 1, most=most)


# -- with other tensors --


def map_tensors(value: Any, change: Callable[[Any], Any], kinds: Kinds = Tensor, depth: int = DEEPEST) -> Any:
    """The same nesting with every tensor replaced, in the order of `tensors_in`; containers are new."""
    if isinstance(value, kinds):
        return change(value)
    if not depth or type(value) in _ATOMS:
        return value
    return _map_parts(value, lambda part: map_tensors(part, change, kinds, depth - 1))


def _map_parts(value: Any, changed: Callable[[Any], Any]) -> Any:
    """The same container with every direct part replaced, in the order of `parts`."""
    if type(value) in (list, tuple):
        return type(value)([changed(part) for part in value])
    if type(value) is dict:
        return {key: changed(part) for key, part in value.items()}
    known = SUPPORTED_NODES.get(type(value))
    if known is not None:
        inside, context = known.flatten_fn(value)
        return known.unflatten_fn([changed(part) for part in inside], context)
    if isinstance(value, Mapping):
        return _map_mapping(value, changed)
    if isinstance(value, tuple) and hasattr(value, "_fields"):  # a named tuple, a packed sequence
        return type(value)(*[changed(part) for part in value])
    if isinstance(value, (list, tuple)):
        return type(value)([changed(part) for part in value])
    if _is_dataclass(value):
        made = copy.copy(value)
        for name, part in _fields(value):
            new = changed(part)
            if hasattr(value, name):
                object.__setattr__(made, name, new)  # even if it is frozen
        return made
    return value


def _map_mapping(value: Mapping[Any, Any], changed: Callable[[Any], Any]) -> Any:
    """A copy that keeps the object's other attributes; a read-only mapping becomes a plain dict."""
    filled = {key: changed(part) for key, part in value.items()}
    if not isinstance(value, MutableMapping):
        return filled
    made = copy.copy(value)
    made.update(filled)
    return made


class _OtherNesting(Exception):  # noqa: N818 - reads as what it is
    """Two values are not nested in the same way."""


def merge_nested(kept: Any, given: Any, choose: Callable[[Any, Any], Any]) -> Any:
    """`given` with `choose(kept, given)` in place of each value that is not a container.

    If the two are nested differently, the result is `given` itself.
    """
    try:
        return _merge(kept, given, choose, DEEPEST)
    except _OtherNesting:
        return given


def _merge(kept: Any, given: Any, choose: Callable[[Any, Any], Any], depth: int) -> Any:
    old, new = (list(parts(value)) if depth else [] for value in (kept, given))
    if not old and not new:
        return choose(kept, given)
    if type(kept) is not type(given) or len(old) != len(new):
        raise _OtherNesting
    if isinstance(given, Mapping) and list(kept) != list(given):
        raise _OtherNesting
    chosen = [_merge(one, other, choose, depth - 1) for one, other in zip(old, new, strict=True)]
    if all(one is other for one, other in zip(chosen, new, strict=True)):
        return given
    rest = iter(chosen)
    return _map_parts(given, lambda _: next(rest))
