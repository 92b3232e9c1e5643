"""One finding, drawn: what, where, the evidence, how to fix it, and what follows from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from clew.records.finding import Evidence, Finding
from clew.render.number_text import number
from clew.render.plot_line import PlotLine
from clew.render.plot_terminal import GUTTER, WIDTH, plot_rows
from clew.render.run_summary import RunSummary
from clew.render.safe_text import neutral, neutral_lines
from clew.render.screen import STYLES, Screen
from clew.render.sparkline import is_logarithmic, sparkline
from clew.render.verdict.sample_gallery import draw_exhibits
from clew.render.verdict.source_place import layer, location, source_line

if TYPE_CHECKING:
    from rich.text import Text

COLUMN = 11  # of the labels: "ruled out" and room
MOST_EVIDENCE = 4  # observations per finding, unless all are asked for
MOST_PLOTS = 2  # of an experiment, unless all are asked for
SPARK_WIDTH = 32
INDENT = 2


def draw_finding(
    screen: Screen,
    finding: Finding,
    run: RunSummary,
    *,
    full: bool,
    indent: int = 0,
    plots: Sequence[PlotLine] = (),
) -> None:
    """The whole block; `indent` sets it beneath its cause, `plots` are those of its experiment."""
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
        told = screen.text(neutral(finding.proof.sentence), style)
        screen.block(told, indent=inner, label="proof", column=COLUMN)


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
    """`▁▂▅█  0.8 → 57  grad.norm, steps 0–299`, with no more than the line can hold."""
    glyphs, values = screen.glyphs, evidence.values
    caption = screen.text(f"  {_caption(evidence, glyphs.dash)}", "dim")
    if len(set(values)) == 1:  # a line that stays level shows nothing
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
