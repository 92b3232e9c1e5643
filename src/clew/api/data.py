"""`clew.data`: what a loader delivers, seen, measured and judged, on what is handed over in a call.

    report = clew.data(loader, model)
    print(report)              # samples and batches side by side, speeds, findings
    report.sample(17)          # one sample through every transform

Nothing of what is handed over is changed, and no iterator of yours is touched.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

from clew.api.examine import Notes, _unseen
from clew.checks import catalog, runner
from clew.checks.run_view import RunView
from clew.labs.loaders.look.loader_view import look
from clew.labs.loaders.pipeline import ITERABLE, MAP, TRAIN, CannotRead, Pipeline, of
from clew.labs.loaders.speed import speed_measurement
from clew.labs.loaders.survey.split_survey import survey
from clew.records.data_report import Report
from clew.records.errors import CannotLook
from clew.records.verdict import Verdict
from clew.render.rich_rng import undrawn
from clew.session.run_options import DataOptions

if TYPE_CHECKING:
    from torch import nn

    from clew.labs.snapshot.subject import Subject

MEASURING = 0.5  # of the time that is left after looking
LONGEST = 12.0  # seconds of measuring, unless a sweep is asked for
Fact = Callable[[str, dict[str, Any]], None]


@dataclass(frozen=True)
class DataReport(Report):
    """What came of it; printed, it is the screen of `clew data`."""

    pipelines: tuple[Pipeline, ...] = field(default=(), repr=False, compare=False)

    def show(self, number: int = 8) -> DataReport:
        """The same with so many samples, of which nothing is measured again."""
        with _unseen():
            looks = tuple(look(pipeline, number) for pipeline in self.pipelines)
        return replace(self, looks=looks or self.looks)

    def sample(self, index: int) -> DataReport:
        """One sample through every stage, of the first loader whose samples have an index."""
        for pipeline in self.pipelines:
            if pipeline.dataset is not None:
                with _unseen():
                    return replace(self, looks=(look(pipeline, 0, sample=index),), measured=(), surveys=())
        raise CannotLook("a single sample is not available because there is no dataset")

    def render(self, *, stream: Any = None, width: int | None = None, full: bool = False) -> None:
        """Draw it on a stream, with colours and pictures if that is a terminal."""
        from clew.render.data.data_terminal import render_data

        render_data(self, stream=stream, width=width, full=full)

    def __str__(self) -> str:
        paper = io.StringIO()
        with undrawn():
            self.render(stream=paper, width=100)
        return paper.getvalue().rstrip("\n")

    def _repr_html_(self) -> str:
        from clew.render.data.data_html import fragment

        return fragment(self)

    def to_html(self) -> str:
        """A whole page."""
        from clew.render.data.data_html import page

        return page(self)

    def to_json(self) -> dict[str, Any]:
        """As `clew data --json`."""
        from clew.render.data.data_json import report_json

        return report_json(self)


def data(
    loader: Any,
    model: nn.Module | None = None,
    *,
    val: Any = None,
    samples: int = 8,
    sample: int | None = None,
    measure: bool = True,
    sweep: bool = False,
    judge: bool = True,
    all: bool = False,
    time_limit: float = 60.0,
    progress: bool | None = None,
) -> DataReport:
    """Look at a DataLoader, a dataset or batches; raises CannotLook.

    `val` is the loader or dataset that is evaluated on, to be compared with it. With a `model` its speed
    is measured beside the loader's. `sample` shows that one through every transform.
    """
    options = DataOptions(
        samples=samples,
        sample=sample,
        measure=measure,
        sweep=sweep,
        judge=judge,
        all=all,
        time_limit=time_limit,
    )
    began, notes = perf_counter(), Notes()
    with _unseen():
        try:
            pipelines = [of(loader, role=TRAIN)]
            pipelines += [of(val, role="eval", names=("val",))] if val is not None else []
        except CannotRead as error:
            raise CannotLook(str(error)) from None
        line = _line() if progress or (progress is None and _is_terminal()) else None
        report = conduct(
            pipelines, options, lambda kind, facts: notes.fact(kind, 0, facts), model=model, progress=line
        )
    verdict = judged(RunView(notes))
    what = type(pipelines[0].dataset if pipelines[0].dataset is not None else loader).__name__
    return replace(
        report, verdict=verdict, what=what, seconds=perf_counter() - began, pipelines=tuple(pipelines)
    )


def _is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def _line() -> Any:
    from clew.render.progress_line import ProgressLine

    return ProgressLine(sys.stderr)


def judged(view: RunView) -> Verdict:
    """What the checks say that read what was found about the data."""
    asked = {f"fact:{kind}" for kind in view.fact_kinds("data.")}
    checks = [c for c in catalog.everything() if asked & {n for need in c.needs for n in need.split("|")}]
    return runner.judge(view, checks=checks)


def conduct(
    pipelines: Sequence[Pipeline],
    options: DataOptions,
    fact: Fact,
    *,
    subject: Subject | None = None,
    model: nn.Module | None = None,
    progress: Any = None,
) -> DataReport:
    """Look, measure and survey, within the time limit; what is found is written as facts too."""
    until = perf_counter() + options.time_limit
    if options.sample is not None:
        pipelines = [p for p in pipelines if p.dataset is not None][:1] or pipelines
    looks = tuple(
        look(pipeline, options.samples if options.sample is None else 0, options.sample)
        for pipeline in pipelines
    )
    for shown in looks:
        fact("data.loader", shown.to_fact())
    report = DataReport(looks=looks)
    if options.sample is not None:
        return report
    if options.measure:
        seconds = (until - perf_counter()) * (MEASURING if options.judge else 1.0)
        seconds = seconds if options.sweep else min(seconds, LONGEST)
        tell = (lambda part: progress(0, 2, f"measuring {part}", 0.0)) if progress is not None else None
        able = [p for p in pipelines if p.kind in (MAP, ITERABLE)]
        trained = [p for p in able if p.role == TRAIN][:1] or able[:1]
        found = speed_measurement.measure(
            trained, subject=subject, model=model, seconds=seconds, sweep=options.sweep, progress=tell
        )
        report = replace(report, measured=tuple(found))
        for one in found:
            for kind, facts in one.facts().items():
                fact(kind, facts)
    if options.judge:
        report = _surveyed(report, pipelines, options, fact, until - perf_counter(), progress)
    return report


def _surveyed(
    report: DataReport,
    pipelines: Sequence[Pipeline],
    options: DataOptions,
    fact: Fact,
    seconds: float,
    progress: Any,
) -> DataReport:
    def tell(done: int, count: int, split: str) -> None:
        if progress is not None:
            progress(1, 2, f"reading {split}", done / max(count, 1))

    through = survey(pipelines, everything=options.all, time_limit=max(seconds, 1.0), progress=tell)
    for one in through.surveys:
        fact("data.survey", one.to_json())
    for pair in through.between:
        fact("data.between", pair.to_json())
    return replace(report, surveys=through.surveys, betweens=through.between)
