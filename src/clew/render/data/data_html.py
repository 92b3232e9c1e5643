"""`clew data` in a notebook or browser: one piece of HTML with style and images inlined, no scripts."""

from __future__ import annotations

from clew.records.data_report import Report
from clew.records.finding import Exhibit
from clew.records.plural import counted
from clew.records.sample_views import LoaderView, SamplePath, StageView, ValueView
from clew.render.data import speed_report, survey_report
from clew.render.data.data_json import image_uri
from clew.render.data.data_terminal import summary_of
from clew.render.data.field_text import field_line, field_lines, loader_words, stage_words
from clew.render.number_text import duration, span
from clew.render.verdict.preflight_html import STYLE, document, figure, sections, text

OWN_STYLE = """
.clew .pairs{display:flex;flex-wrap:wrap;gap:.8em;margin:.5em 0}
.clew .pair{border:1px solid var(--line);border-radius:4px;padding:.4em .6em}
.clew .pair figure{margin:0 .5em 0 0}.clew .pair img{height:80px}
.clew h3{font-size:15px;margin:1.4em 0 .2em}
.clew th{color:var(--dim);font-weight:400;padding:3px 8px;text-align:left}
"""


def page(report: Report) -> str:
    """A whole document."""
    return document(f"clew data {report.what}", fragment(report))


def fragment(report: Report) -> str:
    """Loader by loader, then the dataset as a whole, then the findings."""
    loaders = counted(len(report.loaders), "loader") if report.loaders else "no loaders"
    title = f"<p><b>clew data</b> {text(report.what, 80)} · {loaders} · {duration(report.seconds)}</p>"
    parts = [_loader(shown, report) for shown in report.loaders]
    if report.surveys:
        parts.append(survey_report.fragment(report.surveys, report.betweens))
    parts.append(sections(report.findings, summary_of(report)))
    parts += [f'<p class="warning">{text(note)}</p>' for note in report.notes]
    return f'<div class="clew"><style>{STYLE}{OWN_STYLE}</style>{title}{"".join(parts)}</div>'


def _loader(shown: LoaderView, report: Report) -> str:
    words = [text(word, 120) for word in loader_words(shown)]
    parts = [
        f'<h3>{text(shown.name, 60)}</h3><p class="dim">{" · ".join(words)}</p>',
        f"<p>{' → '.join(text(name, 60) for name in shown.stages)}</p>" if shown.stages else "",
        _way(shown.way) if shown.way is not None else _samples(shown),
        _fields(shown),
        *(f"<p>{text(remark)}</p>" for remark in shown.remarks),
        *(f'<p class="warning">{text(note)}</p>' for note in shown.notes),
        *(speed_report.fragment(measured) for measured in report.measured_of(shown)),
    ]
    return "".join(parts)


def _samples(shown: LoaderView) -> str:
    """Each sample next to its row in the batch."""
    rows: dict[int | None, ValueView] = {r.index: r for r in shown.rows if r.index is not None}
    pairs = [(sample, rows.get(sample.index)) for sample in shown.samples]
    if not any(row for _, row in pairs):
        pairs += [(row, None) for row in shown.rows]
    drawn = []
    for first, second in pairs:
        cells = [_figure(first, "dataset" if first in shown.samples else shown.rows_of)]
        cells += [_figure(second, shown.rows_of)] if second is not None else []
        drawn.append(f'<div class="pair">{"".join(cells)}</div>')
    return f'<div class="pairs">{"".join(drawn)}</div>' if drawn else ""


def _figure(view: ValueView, place: str) -> str:
    caption = ", ".join(word for word in (view.title, view.label, place) if word)
    beneath = f"<figcaption>{text(caption, 200)}</figcaption>"
    if view.error:
        return f'<figure><p class="error">{text(view.error)}</p>{beneath}</figure>'
    uri = image_uri(view)
    if uri:
        return f'<figure><img alt="{text(caption, 200)}" src="{uri}">{beneath}</figure>'
    return figure(Exhibit(view.kind, caption, view.data))


def _fields(shown: LoaderView) -> str:
    cells = "".join(
        f"<tr><td>{place}</td><td>{text(name, 60)}</td><td>{text(words)}</td></tr>"
        for place, name, words in field_lines(shown)
    )
    return f"<table>{cells}</table>" if cells else ""


def _way(way: SamplePath) -> str:
    seeded = f", with random numbers from seed {way.seed}" if any(s.random for s in way.stages) else ""
    error = f'<p class="error">{text(way.error)}</p>' if way.error else ""
    befores = (None, *way.stages)
    rows = "".join(_stage(stage, before) for stage, before in zip(way.stages, befores, strict=False))
    return f"<p>sample {way.index}, stage by stage{seeded}</p><table>{rows}</table>{error}"


def _stage(stage: StageView, before: StageView | None) -> str:
    words = " · ".join(text(word) for word in stage_words(stage))
    made = field_line([stage.made]) if stage.made is not None else ""
    shown = _figure(stage.view, "") if stage.view is not None and stage.differs_from(before) else ""
    error = f'<p class="error">{text(stage.error)}</p>' if stage.error else ""
    return (
        f'<tr><td><b>{text(stage.name, 60)}</b><br><span class="dim">{words}</span></td>'
        f'<td>{text(made)}{error}</td><td>{shown}</td><td class="time">{span(stage.seconds)}</td></tr>'
    )
