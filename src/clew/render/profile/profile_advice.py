"""What would make it faster or smaller: the findings about costs, by what they are worth."""

from __future__ import annotations

from collections.abc import Sequence

from clew.records.finding import Finding, Severity
from clew.records.verdict import Verdict
from clew.render.run_summary import RunSummary
from clew.render.screen import Screen
from clew.render.verdict.finding_block import draw_effects, draw_finding, one_line
from clew.render.verdict.root_causes import effects_by_root

WHOLE = 3  # drawn with evidence and fix; more would not fit the screen
OF_COSTS = "PERF"  # how the ids of the checks about speed and memory begin


def draw_advice(screen: Screen, verdict: Verdict, run: RunSummary, *, full: bool) -> None:
    """Those about costs whole; what else is wrong with the run in a line each, never hidden."""
    groups = effects_by_root(verdict.findings)
    advice = [group for group in groups if is_about_costs(group[0])]
    drawn = advice if full else advice[:WHOLE]
    for root, effects in drawn:
        screen.blank()
        draw_finding(screen, root, run, full=full)
        draw_effects(screen, effects, run, full=full)
    rest = [finding for root, effects in advice[len(drawn) :] for finding in (root, *effects)]
    others = [f for root, effects in groups if not is_about_costs(root) for f in (root, *effects)]
    _draw_brief(screen, rest, "")
    _draw_brief(screen, [f for f in others if full or f.severity is not Severity.ADVICE], "also found")
    if not advice and not others:
        screen.blank()
        screen.block(
            screen.text(f"{screen.glyphs.good} found nothing that would make a step 5 % faster", "green")
        )


def _draw_brief(screen: Screen, findings: Sequence[Finding], heading: str) -> None:
    if not findings:
        return
    screen.blank()
    if heading:
        screen.block(screen.text(heading, "dim"))
    for finding in findings:
        screen.block(one_line(screen, finding))


def is_about_costs(finding: Finding) -> bool:
    return finding.id.startswith(OF_COSTS)
