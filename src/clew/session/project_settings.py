"""What `pyproject.toml` says about Clew:

[tool.clew]
ignore = ["class-imbalance", { check = "dead-units", where = "gate.*", why = "sparse by design" }]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from clew.checks.ignore_rules import Rule

KNOWN = ("ignore",)


class BadSettings(Exception):  # noqa: N818 - reads as what it is
    """A setting that can't be used; the message is one clear line."""


def project_rules(folder: Path) -> list[Rule]:
    """The checks to leave out by the nearest pyproject.toml that mentions Clew, upwards from a folder."""
    for path in (parent / "pyproject.toml" for parent in (folder, *folder.parents)):
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        if "tool.clew" in text:
            return list(_rules(path, _table(path, text)))
    return []


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
        raise BadSettings(f"{path}: tool.clew has no setting {unknown[0]!r}, only {', '.join(KNOWN)}")
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
