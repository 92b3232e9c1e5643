"""JSON codec for frozen dataclasses: written on one machine and read on another.

The content of a file is untrusted: nothing is executed, and what does not fit is left out.

The metadata of a field may say how it is written: `KEY` is its name in the JSON if that is not the field's
own (`class`), `SPARSE` leaves it out if it is None, and `UNWRITTEN` always.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import Field, field, fields, is_dataclass
from enum import Enum
from functools import cache, partial
from typing import Any, TypeVar, get_type_hints

KEY, SPARSE, UNWRITTEN = "key", "sparse", "unwritten"


def keyed(name: str, default: Any = None, *, sparse: bool = False) -> Any:
    """A field with another name in the JSON."""
    return field(default=default, metadata={KEY: name, SPARSE: sparse})


def sparse() -> Any:
    """A field that is written only if it is known."""
    return field(default=None, metadata={SPARSE: True})


def unwritten(default: Any) -> Any:
    """A field that is not part of the JSON."""
    return field(default=default, metadata={UNWRITTEN: True})


def key_of(known: Field[Any]) -> str:
    """The name of a field in the JSON."""
    return str(known.metadata.get(KEY, known.name))


def plain(value: Any) -> Any:
    """Dataclasses, mappings and sequences as JSON types."""
    if is_dataclass(value) and not isinstance(value, type):
        data = {}
        for name, key, left_out_if_none in _written_fields(type(value)):
            item = getattr(value, name)
            if item is not None or not left_out_if_none:
                data[key] = plain(item)
        return data
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


@cache
def _written_fields(kind: type) -> list[tuple[str, str, bool]]:
    """For each field that is written: its name, its name in the JSON, and whether None is left out."""
    written = [known for known in fields(kind) if not known.metadata.get(UNWRITTEN)]
    return [(known.name, key_of(known), bool(known.metadata.get(SPARSE))) for known in written]


T = TypeVar("T")
Convert = Callable[[Any], Any]  # a value to the type of a field; _UNFIT if that is not possible


def read(kind: type[T], data: Mapping[str, Any]) -> T:
    """Read a dataclass from JSON data; a value that does not fit keeps its default.

    Raises TypeError if a field without default is missing.
    """
    return kind(**fitting(kind, data))


def fitting(kind: type, data: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a dataclass whose values fit, by their names in Python."""
    known, made = _read_fields(kind), {}
    for key, value in data.items():
        if key in known:
            name, convert = known[key]
            fitted = convert(value)
            if fitted is not _UNFIT:
                made[name] = fitted
    return made


@cache
def _read_fields(kind: type) -> dict[str, tuple[str, Convert]]:
    """By their names in the JSON: the names of the fields, and what converts their values.

    Looking up the type hints of a class takes longer than reading it.
    """
    hints = get_type_hints(kind)
    return {key: (name, _converter(hints[name])) for name, key, _ in _written_fields(kind)}


_UNFIT: Any = object()


@cache
def _converter(hint: Any) -> Convert:
    """What converts a value to the hinted type."""
    origin = getattr(hint, "__origin__", None)
    inner: tuple[Any, ...] = getattr(hint, "__args__", ())
    if is_dataclass(hint) and isinstance(hint, type):
        return partial(_of_dataclass, hint)
    if origin is tuple or (isinstance(hint, type) and issubclass(hint, tuple)):
        return partial(_of_named_tuple, hint) if hasattr(hint, "_fields") else _tuple_converter(inner)
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        return partial(_of_mapping, _converter(inner[1]))
    if inner and origin is None:  # X | None
        return partial(_of_any, [_converter(one) for one in inner])
    if hint is float or hint is int:
        return partial(_of_number, hint)
    if hint is Any:
        return _unchanged
    if isinstance(hint, type) and issubclass(hint, Enum):
        return partial(_of_enum, hint)
    return partial(_of_kind, hint) if isinstance(hint, type) else _unread


def _unchanged(value: Any) -> Any:
    return value


def _unread(value: Any) -> Any:
    return _UNFIT


def _of_kind(kind: type, value: Any) -> Any:
    return value if isinstance(value, kind) else _UNFIT


def _of_enum(kind: type[Enum], value: Any) -> Any:
    try:
        return kind(value)
    except ValueError:
        return _UNFIT


def _of_any(converters: list[Convert], value: Any) -> Any:
    """The first of several types that fits."""
    for convert in converters:
        fitted = convert(value)
        if fitted is not _UNFIT:
            return fitted
    return _UNFIT


def _of_mapping(convert: Convert, value: Any) -> Any:
    if not isinstance(value, Mapping):
        return _UNFIT
    fitted = {key: convert(item) for key, item in value.items()}
    return {key: item for key, item in fitted.items() if item is not _UNFIT}


_NON_FINITE = ("nan", "inf", "-inf")  # as `json_float` writes them


def _of_number(hint: type[int] | type[float], value: Any) -> Any:
    if hint is float and isinstance(value, str) and value in _NON_FINITE:
        return float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return _UNFIT
    if hint is int:
        return int(value) if abs(value) < 2**63 else _UNFIT
    try:
        return float(value)
    except OverflowError:  # an integer too large for a float
        return _UNFIT


def _of_named_tuple(kind: Any, value: Any) -> Any:
    fitted = _tuple_converter(tuple(get_type_hints(kind).values()))(value)
    return fitted if fitted is _UNFIT else kind(*fitted)


def _of_dataclass(kind: type, value: Any) -> Any:
    if not isinstance(value, Mapping):
        return _UNFIT
    try:
        return read(kind, value)
    except TypeError:  # a field without default is missing
        return _UNFIT


@cache
def _tuple_converter(inner: tuple[Any, ...]) -> Convert:
    """What converts to a tuple of these types, or of one type and any length."""
    if len(inner) == 2 and inner[1] is Ellipsis:
        return partial(_of_any_length, _converter(inner[0]), inner[0] is int)
    return partial(_of_length, [_converter(hint) for hint in inner])


def _of_any_length(convert: Convert, whole: bool, value: Any) -> Any:
    """Leaves out what does not fit, unless `whole`: a shape without one of its sizes is another shape."""
    if not isinstance(value, (list, tuple)):
        return _UNFIT
    fitted = [convert(item) for item in value]
    kept = tuple(one for one in fitted if one is not _UNFIT)
    return _UNFIT if whole and len(kept) < len(fitted) else kept


def _of_length(converters: list[Convert], value: Any) -> Any:
    if not isinstance(value, (list, tuple)) or len(converters) != len(value):
        return _UNFIT
    fitted = tuple(convert(item) for convert, item in zip(converters, value, strict=True))
    return _UNFIT if any(one is _UNFIT for one in fitted) else fitted


def json_float(value: float) -> float | str:
    """JSON has no NaN or infinity, so they are written as strings."""
    if value != value:
        return "nan"
    if value in (float("inf"), float("-inf")):
        return "inf" if value > 0 else "-inf"
    return value


def finite(value: Any) -> Any:
    """The same JSON data without NaN and infinities, which become strings; keys become text."""
    if isinstance(value, float):
        return json_float(value)
    if isinstance(value, dict):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return value


def json_types(value: Any) -> Any:
    """The same value in JSON's own types: numpy and torch numbers become Python numbers."""
    if isinstance(value, Mapping):
        return {str(key): json_types(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [json_types(item) for item in value]
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return json_float(value)
    convert = getattr(value, "tolist", None)  # numpy's and torch's, scalars and arrays alike
    return json_types(convert()) if callable(convert) else str(value)
