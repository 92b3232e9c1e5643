"""What `pyproject.toml` says about Clew:

[tool.clew]
ignore = ["class-imbalance", { check = "dead-units", where = "gate.*", why = "sparse by design" }]

[tool.clew.thresholds]
dead-units.dead_fraction = 0.7
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clew.checks.ignore_rules import Rule
from clew.checks.thresholds import TABLE, ThresholdSetting
from clew.render.stderr_messages import say

KNOWN = ("ignore", "thresholds")

_said: set[str] = set()  # the lines about settings that can't be used: each is printed once per process


class BadSettings(Exception):  # noqa: N818 - reads as what it is
    """A setting that can't be used; the message is one clear line."""


@dataclass(frozen=True)
class ProjectSettings:
    """What a project sets: which findings to leave out, and thresholds of checks."""

    rules: tuple[Rule, ...] = ()
    thresholds: tuple[ThresholdSetting, ...] = ()


def project_settings(folder: Path) -> ProjectSettings:
    """The settings in the nearest pyproject.toml that mentions Clew, upwards from a folder."""
    for path in (parent / "pyproject.toml" for parent in (folder, *folder.parents)):
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        if "tool.clew" in text:
            table = _table(path, text)
            return ProjectSettings(tuple(_rules(path, table)), tuple(_thresholds(path, table)))
    return ProjectSettings()


def _table(path: Path, text: str) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib  # a dependency there
    try:
        table = tomllib.loads(text).get("tool", {}).get("clew", {})
    except tomllib.TOMLDecodeError as error:
        raise BadSettings(f"{path}: {error}") from error
    if not isinstance(table, dict):
        raise BadSettings(f"{path}: tool.clew must be a table")
    unknown = sorted(set(table) - set(KNOWN))
    if unknown:
        raise BadSettings(f"{path}: tool.clew: unknown setting {unknown[0]!r}; available: {', '.join(KNOWN)}")
    return table


def _rules(path: Path, table: dict[str, Any]) -> Iterator[Rule]:
    entries = table.get("ignore", [])
    if not isinstance(entries, list):
        raise BadSettings(f"{path}: tool.clew.ignore must be a list")
    for entry in entries:
        if isinstance(entry, str):
            yield Rule.parse(entry)
        elif isinstance(entry, dict) and isinstance(entry.get("check"), str):
            yield Rule.read(entry)
        else:
            raise BadSettings(f"{path}: tool.clew.ignore takes names, or tables with `check`, not {entry!r}")


def _thresholds(path: Path, table: dict[str, Any]) -> Iterator[ThresholdSetting]:
    entries = table.get("thresholds", {})
    if not isinstance(entries, dict):
        raise BadSettings(f"{path}: {TABLE} must be a table")
    for check, values in entries.items():
        if not isinstance(values, dict):
            raise BadSettings(f"{path}: {TABLE}.{check} must be a table of thresholds, not {values!r}")
        yield ThresholdSetting(check, values)


def threshold_problems(thresholds: Iterable[ThresholdSetting], *, unknown: bool = True) -> list[str]:
    """A line for each value that can't be used; those of unknown checks only with `unknown`."""
    problems: list[str] = []
    for setting in thresholds:
        from clew.checks.catalog import UnknownCheck, find  # imports every check: only if it must

        try:
            problems += setting.problems(find(setting.check))
        except UnknownCheck as error:
            problems += [f"{TABLE}: {error}"] if unknown else []
    return problems


def say_unused(thresholds: Iterable[ThresholdSetting], *, unknown: bool = True) -> None:
    """Say which thresholds can't be used and why."""
    for line in threshold_problems(thresholds, unknown=unknown):
        _say_once(f"{line} (ignored)")


def read_settings() -> ProjectSettings:
    """The settings of the working folder's project; if they can't be used, say why and use none."""
    try:
        return project_settings(Path.cwd())
    except (BadSettings, OSError) as error:
        _say_once(f"{error}; these settings are ignored")
        return ProjectSettings()


def project_thresholds() -> tuple[ThresholdSetting, ...]:
    """The thresholds that the project sets, outside a run; reports those that can't be used."""
    found = read_settings().thresholds
    say_unused(found)
    return found


def _say_once(line: str) -> None:
    if line not in _said:
        _said.add(line)
        say(f"clew: {line}")
