"""Frozen dataclasses to JSON and back, for what is written on one machine and read on another.

Whatever stands in a file is taken as hostile: nothing is executed, and what does not fit is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar, get_type_hints


def plain(value: Any) -> Any:
    """Dataclasses, mappings and sequences as what JSON knows."""
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


T = TypeVar("T")
_KNOWN: dict[Any, dict[str, Any]] = {}  # looking the hints of a class up takes longer than reading it


def read(kind: type[T], data: Mapping[str, Any]) -> T:
    """A dataclass from such data; a value that does not fit is left at its default.

    Raises TypeError where a field without default is missing.
    """
    if kind not in _KNOWN:
        _KNOWN[kind] = get_type_hints(kind)
    hints = _KNOWN[kind]
    known = {f.name for f in fields(kind)}  # type: ignore[arg-type]
    made = {name: _fitting(hints[name], value) for name, value in data.items() if name in known}
    return kind(**{name: value for name, value in made.items() if value is not _MISFIT})


_MISFIT: Any = object()


def _fitting(hint: Any, value: Any) -> Any:
    """The value as the hint wants it; _MISFIT where it can't be."""
    origin = getattr(hint, "__origin__", None)
    inner: tuple[Any, ...] = getattr(hint, "__args__", ())
    if is_dataclass(hint) and isinstance(hint, type):
        return _of_dataclass(hint, value)
    if origin is tuple:
        return _of_tuple(inner, value)
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        fits = isinstance(value, Mapping)
        return {k: v for k, v in value.items() if _fitting(inner[1], v) is not _MISFIT} if fits else _MISFIT
    if inner and origin is None:  # X | None
        fitted = (_fitting(one, value) for one in inner)
        return next((one for one in fitted if one is not _MISFIT), _MISFIT)
    if hint is type(None):
        return value if value is None else _MISFIT
    if hint is float:
        return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else _MISFIT
    if hint is int:
        return (
            int(value)
            if isinstance(value, (int, float)) and value == value and abs(value) < 2**63
            else _MISFIT
        )
    return value if hint is Any or (isinstance(hint, type) and isinstance(value, hint)) else _MISFIT


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
        return tuple(one for one in (_fitting(inner[0], v) for v in value) if one is not _MISFIT)
    if len(inner) != len(value):
        return _MISFIT
    fitted = tuple(_fitting(hint, v) for hint, v in zip(inner, value, strict=True))
    return _MISFIT if _MISFIT in fitted else fitted


def json_float(value: float) -> float | str:
    """JSON has no NaN or infinity; they travel as strings."""
    if value != value:
        return "nan"
    if value in (float("inf"), float("-inf")):
        return "inf" if value > 0 else "-inf"
    return value
