"""Documentation pages made from the checks themselves: their docstrings and thresholds."""

from __future__ import annotations

import inspect
import io
import tokenize
from collections.abc import Iterator
from dataclasses import fields

from clew.checks.base import SECTIONS, Check, sections, summary
from clew.checks.catalog import CHECKS

NOTE = "<!-- made by scripts/docs from the check's docstring; edit that -->"


def pages() -> dict[str, str]:
    """File name and text of every page, the index among them."""
    return {"README.md": index(), **{f"{kind.name}.md": page(kind) for kind in CHECKS}}


def index() -> str:
    rows = [f"| [{kind.name}]({kind.name}.md) | {kind.id} | {summary(kind)} |" for kind in CHECKS]
    head = ["# Checks", "", NOTE, "", "| check | id | what it detects |", "|---|---|---|"]
    return "\n".join([*head, *rows]) + "\n"


def page(kind: type[Check]) -> str:
    parts = sections(kind)
    lines = [f"# {kind.name} ({kind.id})", "", NOTE, ""]
    for heading in SECTIONS:
        lines += [f"## {heading}", "", parts.get(heading, ""), ""]
        if heading == "How to fix":
            lines += _threshold_table(kind)
    needs = ", ".join(f"`{need}`".replace("|", "` or `") for need in kind.needs)
    lines += ["## What it needs", "", f"Recorded: {needs}."]
    return "\n".join(lines) + "\n"


def _threshold_table(kind: type[Check]) -> list[str]:
    reasons = dict(_comments(kind))
    rows = [f"| `{f.name}` | {f.default} | {reasons.get(f.name, '')} |" for f in fields(kind)]
    if not rows:
        return []
    return ["## Thresholds", "", "| name | default | meaning |", "|---|---|---|", *rows, ""]


def _comments(kind: type[Check]) -> Iterator[tuple[str, str]]:
    """A field's name and what the comment beside it says."""
    source = inspect.getsource(kind)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        name = token.line.split(":")[0].strip()
        if token.type == tokenize.COMMENT and name.isidentifier():
            yield name, token.string.lstrip("# ").replace("|", "\\|")
