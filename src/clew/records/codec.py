"""JSON codec for frozen dataclasses: written on one machine and read on another.

The content of a file is untrusted: nothing is executed, and what does not fit is left out.

The metadata of a field may say how it is written: `KEY` is its name in the JSON if that is not the field's
own (`class`), `SPARSE` leaves it out if it is None, and `UNWRITTEN` always.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, field, fields, is_dataclass
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
        return {key_of(f): plain(getattr(value, f.name)) for f in fields(value) if _is_written(value, f)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def _is_written(value: Any, known: Field[Any]) -> bool:
    if known.metadata.get(UNWRITTEN):
        return False
    return not known.metadata.get(SPARSE) or getattr(value, known.name) is not None


T = TypeVar("T")
_KNOWN: dict[Any, dict[str, Any]] = {}  # looking up the type hints of a class takes longer than reading it


def read(kind: type[T], data: Mapping[str, Any]) -> T:
    """Read a dataclass from JSON data; a value that does not fit keeps its default.

    Raises TypeError if a field without default is missing.
    """
    if kind not in _KNOWN:
        _KNOWN[kind] = get_type_hints(kind)
    hints = _KNOWN[kind]
    own = fields(kind)  # type: ignore[arg-type]
    known = {key_of(f): f.name for f in own if not f.metadata.get(UNWRITTEN)}
    made = {known[k]: _fitting(hints[known[k]], value) for k, value in data.items() if k in known}
    return kind(**{name: value for name, value in made.items() if value is not _MISFIT})


_MISFIT: Any = object()


def _fitting(hint: Any, value: Any) -> Any:
    """Convert the value to the hinted type; _MISFIT if that is not possible."""
    origin = getattr(hint, "__origin__", None)
    inner: tuple[Any, ...] = getattr(hint, "__args__", ())
    if is_dataclass(hint) and isinstance(hint, type):
        return _of_dataclass(hint, value)
    if origin is tuple or (isinstance(hint, type) and issubclass(hint, tuple)):
        return _of_named_tuple(hint, value) if hasattr(hint, "_fields") else _of_tuple(inner, value)
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        fits = isinstance(value, Mapping)
        return {k: v for k, v in value.items() if _fitting(inner[1], v) is not _MISFIT} if fits else _MISFIT
    if inner and origin is None:  # X | None
        fitted = (_fitting(one, value) for one in inner)
        return next((one for one in fitted if one is not _MISFIT), _MISFIT)
    if hint is type(None):
        return value if value is None else _MISFIT
    if hint is float or hint is int:
        return _of_number(hint, value)
    return value if hint is Any or (isinstance(hint, type) and isinstance(value, hint)) else _MISFIT


def _of_number(hint: type[int] | type[float], value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return _MISFIT
    if hint is int:
        return int(value) if abs(value) < 2**63 else _MISFIT
    try:
        return float(value)
    except OverflowError:  # an integer too large for a float
        return _MISFIT


def _of_named_tuple(kind: Any, value: Any) -> Any:
    fitted = _of_tuple(tuple(get_type_hints(kind).values()), value)
    return fitted if fitted is _MISFIT else kind(*fitted)


def _of_dataclass(kind: type, value: Any) -> Any:
    if not isinstance(value, Mapping):
        return _MISFIT
    try:
        return read(kind, value)
    except TypeError:  # a field without default is missing
        return _MISFIT


def _of_tuple(inner: tuple[Any, ...], value: Any) -> Any:
    if not isinstance(value, (list, tuple)):
        return _MISFIT
    if len(inner) == 2 and inner[1] is Ellipsis:
        fitted = tuple(_fitting(inner[0], v) for v in value)
        if inner[0] is int and _MISFIT in fitted:
            return _MISFIT  # a shape without one of its sizes is another shape
        return tuple(one for one in fitted if one is not _MISFIT)
    if len(inner) != len(value):
        return _MISFIT
    fitted = tuple(_fitting(hint, v) for hint, v in zip(inner, value, strict=True))
    return _MISFIT if _MISFIT in fitted else fitted


def json_float(value: float) -> float | str:
    """JSON has no NaN or infinity, so they are written as strings."""
    if value != value:
        return "nan"
    if value in (float("inf"), float("-inf")):
        return "inf" if value > 0 else "-inf"
    return value
