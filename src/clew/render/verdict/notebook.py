"""A run in a notebook: the verdict and the loss, as HTML without scripts.

Everything in it may come from a stranger's run, so all of it is escaped; colours are the notebook's own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from clew.records.finding import Finding
from clew.records.plural import counted
from clew.records.signals import LOSS
from clew.records.verdict import Verdict
from clew.render.run_summary import RunSummary
from clew.render.verdict.finding_block import effects_by_root, location

if TYPE_CHECKING:
    from clew.store.read.run_data import RunData

WIDTH, HEIGHT = 480, 90
SHOWN = 400  # points of the loss that a small image can show
MARKS = {"error": ("✗", "#b3341a"), "warning": ("!", "#b07400"), "advice": ("·", "#45607a")}
MOST = 12  # findings shown; the rest is counted

Points = Sequence[tuple[float, float]]


def run_html(verdict: Verdict, run: RunSummary, loss: Points = ()) -> str:
    """The whole view, for `_repr_html_`."""
    parts = [
        '<div style="font-family:system-ui,sans-serif;font-size:13px;line-height:1.45;max-width:60em">',
        _head(verdict, run),
        _curve(loss) if len(loss) > 1 else "",
        *_findings(verdict.findings),
        _foot(verdict, run),
        "</div>",
    ]
    return "\n".join(part for part in parts if part)


def _head(verdict: Verdict, run: RunSummary) -> str:
    worst = verdict.worst()
    said = "nothing to check" if run.idle and not verdict.findings else "no problems found"
    if worst is not None:
        said = counted(len(verdict.findings), "finding")
    steps = counted(run.steps, "step")
    return f"<div><b>{escape(run.script)}</b> · {escape(run.state)} · {steps} · {said}</div>"


def _findings(findings: Iterable[Finding]) -> list[str]:
    groups = effects_by_root(findings)
    shown = [_finding(root, effects) for root, effects in groups[:MOST]]
    left = len(groups) - len(shown)
    return [*shown, f"<div>and {left} more: <code>clew why --all</code></div>"] if left else shown


def _finding(finding: Finding, effects: Sequence[Finding]) -> str:
    mark, colour = MARKS[finding.severity.value]
    rows = {
        "where": _code(location(finding.site)),
        "evidence": "<br>".join(escape(item.text) for item in finding.evidence[:3]),
        "fix": _code(finding.fix),
    }
    table = "".join(
        f'<div style="display:flex;gap:.8em"><span style="opacity:.6;min-width:5em">{name}</span>'
        f"<span>{cell}</span></div>"
        for name, cell in rows.items()
        if cell
    )
    follows = (
        f'<div style="opacity:.75">leads to {escape(", ".join(f.check for f in effects))}</div>'
        if effects
        else ""
    )
    return (
        f'<div style="border-left:3px solid {colour};padding-left:.8em;margin:.6em 0">'
        f'<div><b style="color:{colour}">{mark} {escape(finding.check)}</b> '
        f'<span style="opacity:.6">{finding.severity.value}, {escape(finding.confidence)}</span></div>'
        f"<div>{escape(finding.message)}</div>{table}{follows}</div>"
    )


def _code(text: str | None) -> str:
    return f"<code>{escape(text)}</code>" if text else ""


def _foot(verdict: Verdict, run: RunSummary) -> str:
    judged = counted(len(verdict.ruled_out), "check")
    return (
        f'<div style="opacity:.6">{judged} found nothing, {len(verdict.not_judged)} not judged · '
        f"<code>clew ui</code> shows all of <code>{escape(run.id)}</code></div>"
    )


def _curve(loss: Points) -> str:
    """The loss as a line; points that are not finite break it."""
    finite = [(x, y) for x, y in loss if math.isfinite(y)]
    if len(finite) < 2:
        return ""
    left, right = finite[0][0], finite[-1][0]
    low, high = min(y for _, y in finite), max(y for _, y in finite)
    wide, tall = (right - left) or 1.0, (high - low) or 1.0
    path: list[str] = []
    begins = True
    for x, y in loss:
        if not math.isfinite(y):
            begins = True
            continue
        at = f"{(x - left) / wide * WIDTH:.1f},{HEIGHT - (y - low) / tall * HEIGHT:.1f}"
        path.append(f"{'M' if begins else 'L'}{at}")
        begins = False
    return (
        f'<svg width="{WIDTH}" height="{HEIGHT + 18}" viewBox="0 -4 {WIDTH} {HEIGHT + 22}" role="img" '
        f'aria-label="loss from {loss[0][1]:.3g} to {loss[-1][1]:.3g}">'
        f'<path d="{" ".join(path)}" fill="none" stroke="#0a66a8" stroke-width="1.3"/>'
        f'<text x="0" y="{HEIGHT + 15}" font-size="11" fill="currentColor" opacity=".6">'
        f"loss {finite[0][1]:.3g} → {finite[-1][1]:.3g}, steps {left:.0f}–{right:.0f}</text></svg>"
    )


def loss_points(data: RunData) -> list[tuple[float, float]]:
    """The training loss, at most a few hundred points, including the smallest and the largest."""
    from clew.checks.series import Series

    for site, steps, values in data.series(LOSS.name):
        if site.phase != "eval" and len(values):
            kept = Series(LOSS.name, site, steps, values).evidence("", SHOWN)
            return list(zip(map(float, kept.steps), kept.values, strict=True))
    return []
