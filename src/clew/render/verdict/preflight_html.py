"""A pre-flight in a notebook or browser: one piece of HTML with style, plots and images inlined."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from clew.records.finding import Exhibit, Finding, Severity
from clew.render.images import data_uri, image_of
from clew.render.line_plot import PlotLine, plot_svg
from clew.render.number_text import duration
from clew.render.run_summary import RunSummary
from clew.render.safe_text import neutral, neutral_lines
from clew.render.verdict.finding_block import effects_by_root, layer, location, source_line
from clew.render.verdict.preflight_results import FAILED, PASSED, UNJUDGED, ExperimentAnswer, Preflight
from clew.render.verdict.sample_gallery import rows_of_numbers

MARKS = {PASSED: "✓", FAILED: "✗", UNJUDGED: "–"}
STYLE = """
.clew{--fg:#1c1e21;--dim:#666c75;--line:#d5d8dd;--good:#15803d;--bad:#c81e1e;--warn:#a15c00;--curve:#0b6bcb;
color:var(--fg);font:14px/1.45 system-ui,sans-serif;max-width:60em;text-align:left}
@media(prefers-color-scheme:dark){.clew{--fg:#e4e6ea;--dim:#9aa1ab;--line:#3d4148;--good:#4ade80;--bad:#f87171;
--warn:#fbbf24;--curve:#60a5fa}}
[data-jp-theme-light=false] .clew,.vscode-dark .clew{--fg:#e4e6ea;--dim:#9aa1ab;--line:#3d4148;--good:#4ade80;
--bad:#f87171;--warn:#fbbf24;--curve:#60a5fa}
[data-jp-theme-light=true] .clew,.vscode-light .clew{--fg:#1c1e21;--dim:#666c75;--line:#d5d8dd;--good:#15803d;
--bad:#c81e1e;--warn:#a15c00;--curve:#0b6bcb}
.clew table{border-collapse:collapse;margin:.6em 0;width:100%}
.clew td{border-top:1px solid var(--line);padding:3px 8px;text-align:left;vertical-align:top;background:none}
.clew td.time{text-align:right;white-space:nowrap;color:var(--dim)}
.clew .passed{color:var(--good)}.clew .failed,.clew .error{color:var(--bad);font-weight:600}
.clew .unjudged,.clew .warning{color:var(--warn)}.clew .advice,.clew .dim{color:var(--dim)}
.clew section{border-left:3px solid var(--line);margin:1em 0;padding:.1em 0 .1em 1em}
.clew p{margin:.35em 0}.clew code,.clew pre{font:12.5px/1.45 ui-monospace,monospace;white-space:pre-wrap}
.clew pre{border:1px solid var(--line);border-radius:4px;margin:.35em 0;padding:.4em .7em;
background:none;color:inherit}
.clew figure{display:inline-block;margin:.4em 1em .4em 0;max-width:20em;vertical-align:top}
.clew figcaption{color:var(--dim);font-size:12px}
.clew img{border:1px solid var(--line);height:96px;image-rendering:pixelated;max-width:100%}
.clew-plot{display:block;max-width:520px;width:100%}
.clew-plot text{fill:var(--dim);font:11px system-ui,sans-serif}
.clew-plot .axis{fill:none;stroke:var(--line)}
.clew-plot polyline{fill:none;stroke:var(--curve);stroke-width:1.6}
.clew-plot circle{fill:var(--curve)}.clew-plot .bad{fill:var(--bad)}
"""


def page(preflight: Preflight, run: RunSummary) -> str:
    """A whole document."""
    return document(f"clew check {preflight.what}", fragment(preflight, run))


def document(title: str, body: str) -> str:
    """A page with this fragment as its body."""
    head = f'<meta charset="utf-8"><title>{text(title, 100)}</title>'
    scheme = "<style>:root{color-scheme:light dark}body{margin:2em}</style>"
    return f'<!doctype html><html lang="en"><head>{head}{scheme}</head><body>{body}</body></html>\n'


def fragment(preflight: Preflight, run: RunSummary) -> str:
    """The table, then every finding with its evidence."""
    counts = ", ".join(
        f'<span class="{state}">{len(preflight.names(state))} {word}</span>'
        for state, word in ((PASSED, "passed"), (FAILED, "failed"), (UNJUDGED, "not judged"))
        if preflight.names(state)
    )
    if preflight.others:
        counts += f', <span class="failed">{len(preflight.others)} other</span>'
    title = f"<b>clew check</b> {text(preflight.what, 80)} · {counts} · {duration(preflight.seconds)}"
    rows = "".join(_row(answer) for answer in preflight.answers)
    found = sections(preflight.verdict.findings, run, preflight.plots)
    return f'<div class="clew"><style>{STYLE}</style><p>{title}</p><table>{rows}</table>{found}</div>'


def _row(answer: ExperimentAnswer) -> str:
    said = text(answer.question)
    if answer.state == UNJUDGED:
        hint = f"<br><code>{text(answer.hint)}</code>" if answer.hint else ""
        said += f'<br><span class="dim">not judged: {text(answer.reason)}</span>{hint}'
    name = f'<td class="{answer.state}">{MARKS[answer.state]} {text(answer.name, 60)}</td>'
    return f'<tr>{name}<td>{said}</td><td class="time">{duration(answer.seconds)}</td></tr>'


def sections(
    findings: Iterable[Finding], run: RunSummary, plots: Mapping[str, Sequence[PlotLine]] | None = None
) -> str:
    """Every finding with its evidence, effects after their root cause; `plots` by name of the check."""
    return "".join(
        _section(finding, run, (plots or {}).get(finding.check, ()), root=finding is root)
        for root, effects in effects_by_root(findings)
        for finding in (root, *effects)
    )


def _section(finding: Finding, run: RunSummary, plots: Sequence[PlotLine], *, root: bool) -> str:
    severity = finding.severity.value
    follows = "" if root else ' <span class="dim">· caused by the above</span>'
    parts = [
        f'<p><span class="{severity}">{text(finding.check, 60)}</span> '
        f'<span class="dim">{severity}, {text(finding.confidence, 20)}</span>{follows}</p>',
        f"<p><b>{text(finding.message)}</b></p>",
        _where(finding, run),
        *(_evidence(finding)),
        *(_plot(line) for line in plots if line.x_label not in {e.x_label for e in finding.evidence if e.x}),
        "".join(figure(exhibit) for exhibit in finding.exhibits),
    ]
    if finding.fix.strip():
        parts.append(f"<pre>{'<br>'.join(escape(line) for line in neutral_lines(finding.fix.strip()))}</pre>")
    if finding.proof is not None:
        style = "passed" if finding.proof.helped else "unjudged"
        parts.append(f'<p class="{style}">{text(finding.proof.sentence)}</p>')
    if finding.severity is Severity.ADVICE:
        parts = parts[:3]
    return f"<section>{''.join(parts)}</section>"


def _where(finding: Finding, run: RunSummary) -> str:
    place, part = location(finding.site), layer(finding.site)
    source = source_line(finding.site, unchanged_since=run.started) or ""
    said = " ".join(escape(word) for word in (place or "", source, f"layer {part}" if part else "") if word)
    return f'<p class="dim"><code>{said}</code></p>' if said else ""


def _evidence(finding: Finding) -> list[str]:
    shown = []
    for evidence in finding.evidence:
        shown.append(f"<p>{text(evidence.text)}</p>")
        if len(evidence.values) > 1:
            shown.append(plot_svg(PlotLine.of(evidence)))
    return shown


def _plot(line: PlotLine) -> str:
    drawn = plot_svg(line)
    return f"<p>{text(line.title)}</p>{drawn}" if drawn else ""


def figure(exhibit: Exhibit) -> str:
    caption = f"<figcaption>{text(exhibit.caption, 200)}</figcaption>"
    return f"<figure>{_shown(exhibit)}{caption}</figure>"


def _shown(exhibit: Exhibit) -> str:
    image = image_of(exhibit.data) if exhibit.kind == "image" else None
    if image is not None:
        return f'<img alt="{text(exhibit.caption, 200)}" src="{data_uri(image, 256)}">'
    if exhibit.kind == "wave":
        return plot_svg(PlotLine.wave(exhibit.caption, exhibit.data))
    as_text = exhibit.kind == "text"
    lines = neutral_lines(str(exhibit.data)) if as_text else rows_of_numbers(exhibit.data, 100)
    return f"<pre>{'<br>'.join(escape(line) for line in lines)}</pre>"


def text(words: str, limit: int = 600) -> str:
    return escape(neutral(words, limit))
