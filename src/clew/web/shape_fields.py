"""The fields of the API's shapes, from which OpenAPI, the TypeScript types and docs/api.md are generated.

A shape is a TypedDict, a dataclass as `records.codec` writes it, or a NamedTuple, which is a list in JSON.
"""

from __future__ import annotations

import inspect
import re
from contextlib import suppress
from dataclasses import MISSING, Field, is_dataclass
from dataclasses import fields as dataclass_fields
from functools import cache
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints, is_typeddict

from clew.records.codec import SPARSE, UNWRITTEN, key_of
from clew.web import answer_shapes

COMMENT = re.compile(r"^    (\w+): [^#\n]*#\s*(?:type: ignore\S*\s*#\s*)?(.+)$", re.MULTILINE)


class ShapeField(NamedTuple):
    """A field of a shape."""

    name: str  # in the JSON
    hint: Any
    note: str
    always: bool  # present


def is_row(hint: Any) -> bool:
    """Whether it is a NamedTuple."""
    return isinstance(hint, type) and issubclass(hint, tuple) and hasattr(hint, "_fields")


def is_record(hint: Any) -> bool:
    """Whether it is an object with fields in JSON."""
    return is_typeddict(hint) or (isinstance(hint, type) and is_dataclass(hint))


@cache
def shapes() -> dict[str, Any]:
    """Every shape by its name: what a shape consists of comes before it."""
    found: dict[str, Any] = {}
    for name, shape in vars(answer_shapes).items():
        own = is_record(shape) and shape.__module__ == answer_shapes.__name__
        if own and not name.startswith("_"):  # base classes are part of their subclasses
            _add(shape, found, set())
    return found


def _add(hint: Any, found: dict[str, Any], open_ones: set[str]) -> None:
    """Add the shapes in a type; `open_ones` are those that it is part of."""
    if not is_record(hint) and not is_row(hint):
        for part in get_args(hint):
            _add(part, found, open_ones)
    elif hint.__name__ not in found.keys() | open_ones:
        for field in fields(hint):
            _add(field.hint, found, open_ones | {hint.__name__})
        found[hint.__name__] = hint


@cache
def fields(shape: Any) -> tuple[ShapeField, ...]:
    """The fields of a shape. Those of a dataclass that have a default may be absent: an older version of
    Clew may have written the file without them, and it is passed on as it is.
    """
    hints = get_type_hints(shape, include_extras=True)
    if is_typeddict(shape):
        return tuple(_typed(name, hint, name in shape.__required_keys__) for name, hint in hints.items())
    notes = _comments(shape)
    if is_row(shape):
        return tuple(ShapeField(name, hint, notes.get(name, ""), True) for name, hint in hints.items())
    known = [field for field in dataclass_fields(shape) if not field.metadata.get(UNWRITTEN)]
    return tuple(
        ShapeField(key_of(field), hints[field.name], notes.get(field.name, ""), _is_required(field))
        for field in known
    )


def _typed(name: str, hint: Any, always: bool) -> ShapeField:
    """`Annotated[type, note]`, or `Annotated[type, shape, note]` if recorded JSON is passed on unread."""
    if get_origin(hint) is not Annotated:
        return ShapeField(name, hint, "", always)
    kind, *said = get_args(hint)
    shape = next((one for one in said if not isinstance(one, str)), kind)
    return ShapeField(name, shape, next((one for one in said if isinstance(one, str)), ""), always)


def _is_required(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING and not field.metadata.get(SPARSE)


def _comments(shape: Any) -> dict[str, str]:
    """The comments behind the fields, also of base classes; none where the source is not installed."""
    found: dict[str, str] = {}
    for kind in reversed(shape.__mro__[:-1]):
        with suppress(OSError, TypeError):
            found.update(COMMENT.findall(inspect.getsource(kind)))
    return found


def about(shape: Any) -> str:
    """The first words of its documentation; a shape that is written as a call has none."""
    words = " ".join((shape.__doc__ or "").split())
    return "" if words.startswith(("dict(", f"{shape.__name__}(")) else words
