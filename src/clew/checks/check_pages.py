"""Documentation pages made from the checks themselves: their docstrings and thresholds."""

from __future__ import annotations

from clew.checks.base import SECTIONS, Check, sections, summary
from clew.checks.catalog import CHECKS
from clew.checks.thresholds import described

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
    rows = [f"| `{t.name}` | {t.value} | {_in_a_cell(t.meaning)} |" for t in described(kind())]
    if not rows:
        return []
    return ["## Thresholds", "", "| name | default | meaning |", "|---|---|---|", *rows, ""]


def _in_a_cell(text: str) -> str:
    return text.replace("|", "\\|")
