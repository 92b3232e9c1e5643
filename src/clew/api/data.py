"""`clew.data`: what a loader delivers, seen, measured and judged, on what is handed over in a call.

    report = clew.data(loader, model)
    print(report)              # samples and batches side by side, speeds, findings
    report.sample(17)          # one sample through every transform

Nothing of what is handed over is changed, and no iterator of yours is touched.
"""

from __future__ import annotations

import io
import sys
from dataclasses import dataclass, field, fields, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

from clew.api.examine import Notes, unseen
from clew.checks.run_view import RunView
from clew.checks.runner import judged
from clew.labs.loaders.look.loader_view import look
from clew.labs.loaders.pipeline import TRAIN, CannotRead, Pipeline, of
from clew.labs.loaders.run import conduct
from clew.records.data_report import DataOptions, Report
from clew.records.errors import CannotLook
from clew.render.rich_rng import undrawn

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class DataReport(Report):
    """What came of it; printed, it is the screen of `clew data`."""

    pipelines: tuple[Pipeline, ...] = field(default=(), repr=False, compare=False)

    def show(self, number: int = 8) -> DataReport:
        """The same with so many samples, of which nothing is measured again."""
        with unseen():
            looks = tuple(look(pipeline, number) for pipeline in self.pipelines)
        return replace(self, looks=looks or self.looks)

    def sample(self, index: int) -> DataReport:
        """One sample through every stage, of the first loader whose samples have an index."""
        for pipeline in self.pipelines:
            if pipeline.dataset is not None:
                with unseen():
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
    began, notes = perf_counter(), Notes.of_project()
    with unseen():
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
    judged_report = replace(report, verdict=verdict, what=what, seconds=perf_counter() - began)
    found = {part.name: getattr(judged_report, part.name) for part in fields(judged_report)}
    return DataReport(**found, pipelines=tuple(pipelines))


def _is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def _line() -> Any:
    from clew.render.progress_line import ProgressLine

    return ProgressLine(sys.stderr)
