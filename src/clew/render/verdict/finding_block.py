"""Findings in the terminal: grouped by root cause, each with place, evidence, fix and consequences."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from clew.records.finding import Evidence, Finding, Severity
from clew.records.site import Site
from clew.render.line_plot import GUTTER, WIDTH, PlotLine, plot_rows
from clew.render.number_text import number
from clew.render.run_summary import RunSummary
from clew.render.safe_text import neutral, neutral_lines, short_path
from clew.render.screen import STYLES, Screen
from clew.render.sparkline import is_logarithmic, sparkline
from clew.render.verdict.sample_gallery import draw_exhibits

if TYPE_CHECKING:
    from rich.text import Text

COLUMN = 11  # of the labels: "ruled out" and room
MOST_EVIDENCE = 4  # observations per finding, unless all are requested
MOST_PLOTS = 2  # plots of an experiment, unless all are requested
SPARK_WIDTH = 32
INDENT = 2
FULL_ROOTS = 3  # findings with all their evidence: more would not fit on one screen
LARGEST_SOURCE = 4_000_000  # bytes; a larger file is data, not a program

Group = tuple[Finding, list[Finding]]


def effects_by_root(findings: Iterable[Finding]) -> list[Group]:
    """Each root cause with everything that follows from it, directly or not, in the verdict's order."""
    found = list(findings)
    by_id = {finding.id: finding for finding in reversed(found)}
    rooted = [(finding, _root_of(finding, by_id)) for finding in found]
    groups: dict[int, Group] = {id(finding): (finding, []) for finding, root in rooted if root is finding}
    for finding, root in rooted:
        if root is not finding:
            groups[id(root)][1].append(finding)
    return list(groups.values())


def _root_of(finding: Finding, by_id: dict[str, Finding]) -> Finding:
    passed = {finding.id}
    current = finding
    while True:
        cause = next((by_id[i] for i in current.because if i in by_id), None)
        if cause is None:
            return current
        if cause.id in passed:  # a cycle has no root: each is its own
            return finding
        passed.add(cause.id)
        current = cause


def draw_findings(
    screen: Screen,
    findings: Iterable[Finding],
    run: RunSummary,
    *,
    full: bool,
    plots: Mapping[str, Sequence[PlotLine]] | None = None,
) -> None:
    """The first root causes with all their evidence; the rest, and advice, in a line each."""
    groups = effects_by_root(findings)
    faults = [group for group in groups if full or group[0].severity is not Severity.ADVICE]
    drawn = faults if full else faults[:FULL_ROOTS]
    for root, effects in drawn:
        screen.blank()
        draw_finding(screen, root, run, full=full, plots=(plots or {}).get(root.check, ()))
        draw_effects(screen, effects, run, full=full)
    rest = [group for group in groups if group not in drawn]
    if rest:
        screen.blank()
    for root, effects in rest:
        for finding in (root, *effects):
            screen.block(one_line(screen, finding))


def draw_finding(
    screen: Screen,
    finding: Finding,
    run: RunSummary,
    *,
    full: bool,
    indent: int = 0,
    plots: Sequence[PlotLine] = (),
) -> None:
    """The whole block; `indent` puts it below its cause, `plots` are those of its experiment."""
    inner = indent + INDENT
    screen.block(_title(screen, finding), indent=indent)
    screen.block(screen.text(neutral(finding.message), "bold"), indent=inner)
    _draw_place(screen, finding, run, inner)
    _draw_evidence(screen, finding.evidence, full, inner)
    drawn = {e.x_label for e in finding.evidence if e.x}  # the same line again shows nothing new
    for line in [p for p in plots if p.x_label not in drawn][: None if full else MOST_PLOTS]:
        screen.block(neutral(line.title, 200), indent=inner, label="plot", column=COLUMN)
        _draw_plot(screen, line, inner)
    if finding.exhibits:
        draw_exhibits(screen, finding.exhibits, full=full, indent=inner, column=COLUMN)
    for n, words in enumerate(neutral_lines(finding.fix.strip("\n"))):
        label = "" if n else "fix"
        screen.block(screen.text(words, "green"), indent=inner, label=label, column=COLUMN)
    if finding.proof is not None:
        style = "green" if finding.proof.helped else "yellow"
        proof = screen.text(neutral(finding.proof.sentence), style)
        screen.block(proof, indent=inner, label="proof", column=COLUMN)


def draw_effects(screen: Screen, effects: list[Finding], run: RunSummary, *, full: bool) -> None:
    """What follows from the finding above."""
    for n, effect in enumerate(effects):
        if full:
            screen.blank()
            screen.block(screen.text("leads to", "dim"), indent=INDENT)
            draw_finding(screen, effect, run, full=True, indent=2 * INDENT)
        else:
            label = "" if n else "leads to"
            screen.block(one_line(screen, effect), indent=INDENT, label=label, column=COLUMN)


def one_line(screen: Screen, finding: Finding) -> Text:
    """Mark, name and message, where there is no room for more."""
    return screen.join(_name(screen, finding), "  ", neutral(finding.message, 200))


def _name(screen: Screen, finding: Finding) -> Text:
    mark = screen.glyphs.mark(finding.severity)
    return screen.text(f"{mark} {neutral(finding.check, 60)}", STYLES[finding.severity.value])


def _title(screen: Screen, finding: Finding) -> Text:
    since = f", from step {finding.step}" if finding.step else ""
    sure = f"  {finding.severity.value}, {neutral(finding.confidence, 20)}{since}"
    return screen.join(_name(screen, finding), screen.text(sure, "dim"))


def _draw_place(screen: Screen, finding: Finding, run: RunSummary, indent: int) -> None:
    rows = []
    where = location(finding.site)
    if where is not None:
        source = source_line(finding.site, unchanged_since=run.started)
        room = indent + COLUMN + len(where) + 2
        quoted = screen.text(f"  {screen.fit(source, room)}", "dim") if source else ""
        rows.append(screen.join(screen.text(where, "cyan"), quoted))
    part = layer(finding.site)
    if part is not None:
        phase = f" in {finding.site.phase}" if finding.site.phase == "eval" else ""
        rows.append(screen.join(screen.text("layer ", "dim"), f"{part}{phase}"))
    for n, row in enumerate(rows):
        screen.block(row, indent=indent, label="" if n else "where", column=COLUMN)


def _draw_evidence(screen: Screen, evidence: tuple[Evidence, ...], full: bool, indent: int) -> None:
    shown = evidence if full else evidence[:MOST_EVIDENCE]
    label = "evidence"
    for observation in shown:
        screen.block(neutral(observation.text), indent=indent, label=label, column=COLUMN)
        if observation.x and len(observation.values) > 1:
            _draw_plot(screen, PlotLine.of(observation), indent)
        elif len(observation.values) > 1:
            screen.block(_series(screen, observation, indent), indent=indent, column=COLUMN)
        label = ""
    if len(shown) < len(evidence):
        more = screen.text(f"and {len(evidence) - len(shown)} more", "dim")
        screen.block(more, indent=indent, label=label, column=COLUMN)


def _draw_plot(screen: Screen, line: PlotLine, indent: int) -> None:
    room = min(screen.width - indent - COLUMN - GUTTER, WIDTH)
    for row in plot_rows(line, room, plain=screen.glyphs.plain):
        screen.row(screen.text(row, "cyan"), indent=indent, column=COLUMN)


def _series(screen: Screen, evidence: Evidence, indent: int) -> Text:
    """`▁▂▅█  0.8 → 57  grad.norm, steps 0–299`, with no more than fits on the line."""
    glyphs, values = screen.glyphs, evidence.values
    caption = screen.text(f"  {_caption(evidence, glyphs.dash)}", "dim")
    if len(set(values)) == 1:  # a flat line shows nothing
        return screen.join(f"{number(values[0])} throughout", caption)
    ends = f"  {number(values[0])} {glyphs.arrow} {number(values[-1])}"
    room = screen.width - indent - COLUMN - len(ends)
    if room - len(caption) < SPARK_WIDTH // 2:
        caption = screen.text()
    blocks = sparkline(values, min(SPARK_WIDTH, room - len(caption)), plain=glyphs.plain)
    return screen.join(screen.text(blocks, "cyan"), ends, caption)


def _caption(evidence: Evidence, dash: str) -> str:
    parts = [neutral(evidence.signal, 40)] if evidence.signal else []
    if evidence.steps:
        parts.append(f"steps {evidence.steps[0]}{dash}{evidence.steps[-1]}")
    if is_logarithmic(evidence.values):
        parts.append("log scale")
    return ", ".join(parts)


def location(site: Site) -> str | None:
    """`train.py:42`, as seen from the working folder."""
    if site.file is None:
        return None
    name = site.file if site.file.startswith("<") else short_path(site.file)
    return neutral(name if site.line is None else f"{name}:{site.line}", 200)


def layer(site: Site) -> str | None:
    """`encoder.fc1.weight`: the module and its parameter."""
    parts = [part for part in (site.module, site.param) if part]
    return neutral(".".join(parts), 120) if parts else None


def source_line(site: Site, unchanged_since: float | None = None) -> str | None:
    """The text of the line, if the file exists and was not edited after the run began."""
    if site.file is None or site.line is None or site.line < 1:
        return None
    try:
        about = os.stat(site.file)
        if not stat.S_ISREG(about.st_mode) or about.st_size > LARGEST_SOURCE:
            return None  # a path in a run may name anything, even a device that never ends
        if unchanged_since is not None and about.st_mtime > unchanged_since:
            return None
        with open(site.file, encoding="utf-8", errors="replace") as file:
            found = next(islice(file, site.line - 1, None), "")
    except (OSError, ValueError):
        return None
    return neutral(found.strip(), 200) or None
