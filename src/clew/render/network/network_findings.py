"""What the checks say of a network, beneath its table: a few lines each."""

from __future__ import annotations

from collections.abc import Sequence

from clew.records.finding import Finding
from clew.render.safe_text import neutral
from clew.render.screen import STYLES, Screen
from clew.render.verdict.source_place import layer, location

INDENT = 2


def draw_findings(screen: Screen, findings: Sequence[Finding]) -> None:
    """Name and severity, what is wrong, where, and the fix; nothing for a healthy network."""
    for finding in findings:
        screen.blank()
        style = STYLES[finding.severity.value]
        mark = screen.text(f"{screen.glyphs.mark(finding.severity)} {finding.check}", style)
        screen.line(mark, screen.text(f"  {finding.severity.value}", "dim"))
        place = location(finding.site) or layer(finding.site)
        where = f" ({place})" if place else ""
        screen.block(neutral(finding.message) + where, indent=INDENT)
        screen.block(f"fix: {neutral(finding.fix)}", indent=INDENT)
    if findings:
        screen.blank()
        one = findings[0].check if len(findings) == 1 else "NAME"
        screen.block(screen.text(f"more: clew explain {one}", "dim"))
