"""`clew.data`: shows, measures and checks what a loader delivers, on objects that you pass.

    report = clew.data(loader, model)
    print(report)              # samples and batches side by side, speeds, findings
    report.sample(17)          # one sample through every transform

Your objects are not changed, and no iterator of yours is advanced.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, fields, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

from clew.api.examine import unwatched
from clew.checks.run_view import RunView
from clew.checks.runner import judged
from clew.labs.loaders.loader_view import view_loader
from clew.labs.loaders.readable_loader import EVAL, TRAIN, ReadableLoader, readable_loader
from clew.labs.loaders.run import inspect_loaders
from clew.records.data_report import DataOptions, Report
from clew.records.errors import CannotRead
from clew.records.facts.fact import FactsInMemory
from clew.render.screen import drawn_text
from clew.session.project_settings import threshold_facts

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class DataReport(Report):
    """The result of `clew.data`; printed, it is the screen of `clew data`."""

    readable: tuple[ReadableLoader, ...] = field(default=(), repr=False, compare=False)

    def show(self, number: int = 8) -> DataReport:
        """The same report with this many samples; nothing is measured again."""
        with unwatched():
            loaders = tuple(view_loader(loader, number) for loader in self.readable)
        return replace(self, loaders=loaders or self.loaders)

    def sample(self, index: int) -> DataReport:
        """One sample through every stage, of the first loader whose samples have an index."""
        for loader in self.readable:
            if loader.dataset is not None:
                with unwatched():
                    shown = view_loader(loader, 0, sample=index)
                return replace(self, loaders=(shown,), measured=(), surveys=())
        raise CannotRead("a single sample is not available because there is no dataset")

    def render(self, *, stream: Any = None, width: int | None = None, full: bool = False) -> None:
        """Draw the report on a stream, with colours and images if that is a terminal."""
        from clew.render.data.data_terminal import render_data

        render_data(self, stream=stream, width=width, full=full)

    def __str__(self) -> str:
        return drawn_text(self.render, width=100)

    def _repr_html_(self) -> str:
        from clew.render.data.data_html import fragment

        return fragment(self)

    def to_html(self) -> str:
        """The report as an HTML page."""
        from clew.render.data.data_html import page

        return page(self)

    def to_json(self) -> dict[str, Any]:
        """The same as `clew data --json` writes."""
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
    """Inspect a DataLoader, a dataset or batches; raises CannotRead.

    `val` is the loader or dataset for evaluation; the two are compared. With a `model`, its speed is
    compared with the loader's. `sample` shows only that sample, stage by stage through its transforms.
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
    began, notes = perf_counter(), FactsInMemory([*threshold_facts()])
    with unwatched():
        readable = [readable_loader(loader, role=TRAIN)]
        readable += [readable_loader(val, role=EVAL, names=("val",))] if val is not None else []
        line = _line() if progress or (progress is None and _is_terminal()) else None
        report = inspect_loaders(readable, options, notes, model=model, progress=line)
    verdict = judged(RunView(notes))
    what = type(readable[0].dataset if readable[0].dataset is not None else loader).__name__
    judged_report = replace(report, verdict=verdict, what=what, seconds=perf_counter() - began)
    found = {part.name: getattr(judged_report, part.name) for part in fields(judged_report)}
    return DataReport(**found, readable=tuple(readable))


def _is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def _line() -> Any:
    from clew.render.stderr_messages import ProgressLine

    return ProgressLine(sys.stderr)
