"""Thresholds that a project sets itself, instead of a check's defaults.

They come from `[tool.clew.thresholds]` in pyproject.toml and are recorded as `thresholds` facts, so that
the verdict of a run is the same wherever it is read.
"""

from __future__ import annotations

import inspect
import io
import math
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from clew.records.facts.run_facts import ThresholdsFact

if TYPE_CHECKING:
    from clew.checks.base import Check
    from clew.checks.run_view import RunView

TABLE = "tool.clew.thresholds"

Limits = TypeVar("Limits")  # a check, or a dataclass with some of its thresholds


@dataclass(frozen=True)
class ThresholdSetting:
    """The thresholds set for one check, by its name or id, as written."""

    check: str
    values: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """For a fact: only numbers and tables of numbers, since nothing else can be a threshold."""
        return {"check": self.check, "values": _numbers(self.values)}

    def is_for(self, check: Check) -> bool:
        return self.check.lower() in (check.name, check.id.lower())

    def fitting(self, check: Check) -> ThresholdSetting:
        """Only the values that the check can use, under the check's name."""
        usable = {name: value for name, value, problems in self._tried(check) if not problems}
        return ThresholdSetting(check.name, usable)

    def problems(self, check: Check) -> list[str]:
        """Why values can't be used, one line each."""
        return [line for _, _, problems in self._tried(check) for line in problems]

    def applied(self, check: Check) -> Check:
        """The check with every threshold that fits it."""
        return _changed(check, self.fitting(check).values)

    def _tried(self, check: Check) -> Iterator[tuple[str, Any, list[str]]]:
        """Each name and value, with the reasons why the check can't use it."""
        for name, value in self.values.items():
            yield name, value, list(_problems(check, name, value, f"{TABLE}.{check.name}"))


def _numbers(values: Mapping[str, Any]) -> dict[str, Any]:
    tables = {name: _numbers(value) for name, value in values.items() if isinstance(value, Mapping)}
    return {name: value for name, value in values.items() if _is_number(value)} | tables


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def in_force(checks: Iterable[Check], run: RunView) -> list[Check]:
    """The checks with the thresholds that a run was recorded with."""
    settings = [ThresholdSetting(fact.check, fact.values) for fact in run.known(ThresholdsFact)]
    return [adjusted(check, settings) for check in checks] if settings else list(checks)


def adjusted(check: Check, settings: Iterable[ThresholdSetting]) -> Check:
    """The check with the settings that are for it and that it can use; the later of two counts."""
    for setting in settings:
        if setting.is_for(check):
            check = setting.applied(check)
    return check


@dataclass(frozen=True)
class Threshold:
    """One threshold of a check; those in a group have a dotted name, `trial.seeds`."""

    name: str
    value: int | float
    meaning: str  # the comment beside it


def thresholds_of(limits: object, prefix: str = "") -> Iterator[Threshold]:
    """The thresholds of a check, in the order in which it defines them."""
    meanings = dict(_comments(type(limits)))
    for name, value in _values(limits).items():
        if is_dataclass(value):
            yield from thresholds_of(value, f"{prefix}{name}.")
        else:
            yield Threshold(f"{prefix}{name}", value, meanings.get(name, ""))


def _comments(kind: type) -> Iterator[tuple[str, str]]:
    """The name of each field and the comment beside it; nothing if the source is not available."""
    try:
        source = inspect.getsource(kind)
    except (OSError, TypeError):
        return
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        name = token.line.split(":")[0].strip()
        if token.type == tokenize.COMMENT and name.isidentifier():
            yield name, token.string.lstrip("# ")


def _values(limits: Any) -> dict[str, Any]:
    return {field.name: getattr(limits, field.name) for field in fields(limits)}


def _problems(limits: object, name: str, value: object, table: str) -> Iterator[str]:
    """What is wrong with one value: with a table of values, with each of them."""
    known = _values(limits)
    if name not in known:
        available = f"; available: {', '.join(known)}" if known else ""
        yield f"{table}: unknown threshold {name!r}{available}"
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
