"""Thresholds that a project sets itself, instead of a check's defaults.

They come from `[tool.clew.thresholds]` in pyproject.toml and are recorded as `thresholds` facts, so that
the verdict of a run is the same wherever it is read.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from clew.checks.base import Check
    from clew.checks.run_view import RunView

FACT = "thresholds"
TABLE = "tool.clew.thresholds"

Limits = TypeVar("Limits")  # a check, or a dataclass that holds some of its thresholds


@dataclass(frozen=True)
class ThresholdSetting:
    """The thresholds set for one check, by its name or id, as written."""

    check: str
    values: Mapping[str, Any]

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> ThresholdSetting:
        """From a fact."""
        values = data.get("values")
        return cls(str(data.get("check") or ""), values if isinstance(values, Mapping) else {})

    def to_json(self) -> dict[str, Any]:
        """For a fact: numbers and tables of numbers, for nothing else can be a threshold."""
        return {"check": self.check, "values": _numbers(self.values)}

    def is_for(self, check: Check) -> bool:
        return self.check.lower() in (check.name, check.id.lower())

    def fitting(self, check: Check) -> ThresholdSetting:
        """The values that the check can use, under the check's name."""
        return ThresholdSetting(check.name, {name: v for name, v, wrong in self._tried(check) if not wrong})

    def problems(self, check: Check) -> list[str]:
        """Why values can't be used, one line each."""
        return [line for _, _, wrong in self._tried(check) for line in wrong]

    def applied(self, check: Check) -> Check:
        """The check with every threshold that fits it."""
        return _changed(check, self.fitting(check).values)

    def _tried(self, check: Check) -> Iterator[tuple[str, Any, list[str]]]:
        for name, value in self.values.items():
            yield name, value, list(_problems(check, name, value, f"{TABLE}.{check.name}"))


def _numbers(values: Mapping[str, Any]) -> dict[str, Any]:
    tables = {name: _numbers(value) for name, value in values.items() if isinstance(value, Mapping)}
    return {name: value for name, value in values.items() if _is_number(value)} | tables


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def in_force(checks: Iterable[Check], run: RunView) -> list[Check]:
    """The checks with the thresholds that a run was recorded with."""
    settings = [ThresholdSetting.read(fact.data) for fact in run.facts(FACT)]
    return [_with_all(check, settings) for check in checks] if settings else list(checks)


def _with_all(check: Check, settings: Iterable[ThresholdSetting]) -> Check:
    for setting in settings:
        if setting.is_for(check):
            check = setting.applied(check)
    return check


def thresholds_of(limits: object, prefix: str = "") -> dict[str, int | float]:
    """The thresholds of a check and their values; those that it keeps together have a dotted name."""
    found: dict[str, int | float] = {}
    for name, value in _values(limits).items():
        nested = is_dataclass(value)
        found |= thresholds_of(value, f"{prefix}{name}.") if nested else {f"{prefix}{name}": value}
    return found


def _values(limits: Any) -> dict[str, Any]:
    return {field.name: getattr(limits, field.name) for field in fields(limits)}


def _problems(limits: object, name: str, value: object, table: str) -> Iterator[str]:
    """What is wrong with one value: with a table of values, with each of them."""
    known = _values(limits)
    if name not in known:
        only = f", only {', '.join(known)}" if known else ""
        yield f"{table} has no threshold {name!r}{only}"
    elif not is_dataclass(known[name]):
        wanted = _mismatch(known[name], value)
        if wanted:
            yield f"{table}.{name} must be {wanted}, not {value!r}"
    elif isinstance(value, Mapping):
        for inner, given in value.items():
            yield from _problems(known[name], inner, given, f"{table}.{name}")
    else:
        yield f"{table}.{name} is a table of {', '.join(_values(known[name]))}, not {value!r}"


def _mismatch(default: object, value: object) -> str | None:
    """What is expected instead of a value; None if it can be used."""
    if isinstance(default, int):
        return None if _is_number(value) and isinstance(value, int) else "a whole number"
    return None if _is_number(value) else "a number"


def _changed(limits: Limits, values: Mapping[str, Any]) -> Limits:
    """With values that are known to fit."""
    present = _values(limits)
    new = {
        name: _changed(present[name], value) if is_dataclass(present[name]) else type(present[name])(value)
        for name, value in values.items()
    }
    return replace(limits, **new)  # type: ignore[type-var]  # a dataclass, as `fields` has found
