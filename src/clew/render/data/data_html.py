"""`clew data` in a notebook or browser: one piece of HTML with style and images inlined, no scripts."""

from __future__ import annotations

from collections.abc import Sequence

from clew.records.data_report import Report
from clew.records.finding import Exhibit
from clew.records.sample_views import PipelineLook, SamplePath, StageLook, ValueView
from clew.render.data import speed_report
from clew.render.data.data_json import image_uri
from clew.render.data.field_text import said_of, together
from clew.render.data.loader_screen import described
from clew.render.number_text import duration, span
from clew.render.run_summary import RunSummary
from clew.render.safe_text import short_path
from clew.render.verdict.preflight_html import STYLE, figure, section, text
from clew.render.verdict.root_causes import effects_by_root

OWN_STYLE = """
.clew .pairs{display:flex;flex-wrap:wrap;gap:.8em;margin:.5em 0}
.clew .pair{border:1px solid var(--line);border-radius:4px;padding:.4em .6em}
.clew .pair figure{margin:0 .5em 0 0}.clew .pair img{height:80px}
.clew h3{font-size:15px;margin:1.4em 0 .2em}
.clew th{color:var(--dim);font-weight:400;padding:3px 8px;text-align:left}
"""


def page(report: Report) -> str:
    """A whole document."""
    head = f'<meta charset="utf-8"><title>{text(f"clew data {report.what}", 100)}</title>'
    scheme = "<style>:root{color-scheme:light dark}body{margin:2em}</style>"
    return (
        f'<!doctype html><html lang="en"><head>{head}{scheme}</head><body>{fragment(report)}</body></html>\n'
    )


def fragment(report: Report) -> str:
    """Loader by loader, then the data set as a whole, then what is wrong."""
    count = len(report.looks)
    loaders = "1 loader" if count == 1 else f"{count or 'no'} loaders"
    title = f"<p><b>clew data</b> {text(report.what, 80)} · {loaders} · {duration(report.seconds)}</p>"
    parts = [_loader(shown, report) for shown in report.looks]
    if report.surveys:
        from clew.render.data import survey_report

        parts.append(survey_report.fragment(report.surveys, report.betweens))
    parts += [*_findings(report), *(f'<p class="warning">{text(note)}</p>' for note in report.notes)]
    return f'<div class="clew"><style>{STYLE}{OWN_STYLE}</style>{title}{"".join(parts)}</div>'


def _findings(report: Report) -> list[str]:
    summary = RunSummary(
        id="data", path="", script=report.what, state="finished", steps=0, checks=report.verdict.asked
    )
    return [
        section(finding, summary, (), root=finding is root)
        for root, effects in effects_by_root(report.findings)
        for finding in (root, *effects)
    ]


def _loader(shown: PipelineLook, report: Report) -> str:
    role = {"train": "training", "eval": "evaluation"}.get(shown.role, "")
    place = f"{short_path(shown.file)}:{shown.line}" if shown.file else ""
    words = [text(word, 120) for word in (role, place, *described(shown)) if word]
    parts = [
        f'<h3>{text(shown.name, 60)}</h3><p class="dim">{" · ".join(words)}</p>',
        f"<p>{' → '.join(text(name, 60) for name in shown.stages)}</p>" if shown.stages else "",
        _way(shown.way) if shown.way is not None else _samples(shown),
        _fields(shown),
        *(f"<p>{text(remark)}</p>" for remark in shown.remarks),
        *(f'<p class="warning">{text(note)}</p>' for note in shown.notes),
        *(
            speed_report.fragment(m)
            for m in report.measured
            if (m.loader, m.line) == (shown.name, shown.line)
        ),
    ]
    return "".join(parts)


def _samples(shown: PipelineLook) -> str:
    """Each sample with its row in the batch beside it."""
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


def _figure(look: ValueView, place: str) -> str:
    caption = ", ".join(word for word in (look.title, look.label, place) if word)
    beneath = f"<figcaption>{text(caption, 200)}</figcaption>"
    if look.error:
        return f'<figure><p class="error">{text(look.error)}</p>{beneath}</figure>'
    uri = image_uri(look.data) if look.kind == "image" else ""
    if uri:
        return f'<figure><img alt="{text(caption, 200)}" src="{uri}">{beneath}</figure>'
    return figure(Exhibit(look.kind, caption, look.data))


def _fields(shown: PipelineLook) -> str:
    lines = [("dataset", name, said) for name, said in together([s for s in shown.samples if not s.error])]
    lines += [("batch", part.name, said_of([part])) for part in shown.batch]
    lines += [("model", part.name, said_of([part])) for part in shown.inputs]
    cells = "".join(
        f"<tr><td>{place}</td><td>{text(name, 60)}</td><td>{text(said)}</td></tr>"
        for place, name, said in lines
    )
    return f"<table>{cells}</table>" if cells else ""


def _way(way: SamplePath) -> str:
    seeded = f", with random numbers from seed {way.seed}" if any(s.random for s in way.stages) else ""
    error = f'<p class="error">{text(way.error)}</p>' if way.error else ""
    rows = "".join(_stage(stage, way.stages[:n]) for n, stage in enumerate(way.stages))
    return f"<p>sample {way.index}, stage by stage{seeded}</p><table>{rows}</table>{error}"


def _stage(stage: StageLook, before: Sequence[StageLook]) -> str:
    place = f"{short_path(stage.file)}:{stage.line}" if stage.file else ""
    words = " · ".join(text(w) for w in (stage.kind, "random" if stage.random else "", place) if w)
    made = said_of([stage.made]) if stage.made is not None else ""
    seen = (
        before
        and before[-1].look is not None
        and stage.look is not None
        and before[-1].look.data == stage.look.data
    )
    shown = _figure(stage.look, "") if stage.look is not None and not seen else ""
    error = f'<p class="error">{text(stage.error)}</p>' if stage.error else ""
    return (
        f'<tr><td><b>{text(stage.name, 60)}</b><br><span class="dim">{words}</span></td>'
        f'<td>{text(made)}{error}</td><td>{shown}</td><td class="time">{span(stage.seconds)}</td></tr>'
    )
