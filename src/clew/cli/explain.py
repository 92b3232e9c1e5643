"""`clew explain`: the documentation of a check."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from clew.cli.options import json_flag, unknown_check

if TYPE_CHECKING:
    from clew.checks.base import Check
    from clew.render.verdict.check_text import CheckEntry


@click.command("explain", short_help="Explain a check: what it detects, why it is bad, how to fix it.")
@click.argument("check", required=False)
@json_flag
def command(check: str | None, as_json: bool) -> int:
    """Explain what a check detects, why that is bad, and how to fix it; without CHECK, list all checks.

    \b
      clew explain
      clew explain dead-units
    """
    from clew.render.verdict.check_text import render_check, render_checks
    from clew.render.verdict_json import dumps

    entries = _entries(check)
    if as_json:
        data = [_to_json(entry, whole=check is not None) for entry in entries]
        sys.stdout.write(dumps(data[0] if check is not None else data))
    elif check is not None:
        render_check(entries[0], stream=sys.stdout)
    else:
        render_checks(entries, stream=sys.stdout)
    return 0


def _entries(name: str | None) -> list[CheckEntry]:
    from clew.checks.base import UnknownCheck
    from clew.checks.catalog import everything, find

    try:
        return [_entry(c) for c in everything()] if name is None else [_whole_entry(find(name))]
    except UnknownCheck as error:
        raise unknown_check(error) from error


def _entry(check: Check | type[Check]) -> CheckEntry:
    from clew.checks.base import sections, summary
    from clew.render.verdict.check_text import CheckEntry

    return CheckEntry(check.name, check.id, summary(check), sections(check))


def _whole_entry(check: Check) -> CheckEntry:
    """With its thresholds, as the project of this folder has set them."""
    from dataclasses import replace

    from clew.checks.thresholds import adjusted, thresholds_of
    from clew.render.verdict.check_text import ThresholdRow
    from clew.session.project_settings import project_thresholds

    here = adjusted(check, project_thresholds())
    rows = [
        ThresholdRow(default.name, own.value, default.value, own.meaning)
        for default, own in zip(thresholds_of(check), thresholds_of(here), strict=True)
    ]
    return replace(_entry(check), thresholds=rows)


def _to_json(entry: CheckEntry, *, whole: bool) -> dict[str, object]:
    short: dict[str, object] = {"check": entry.name, "id": entry.id, "summary": entry.summary}
    if not whole:
        return short
    thresholds = [
        {"name": row.name, "value": row.value, "default": row.default, "meaning": row.meaning}
        for row in entry.thresholds
    ]
    return {**short, "sections": dict(entry.sections), "thresholds": thresholds}
