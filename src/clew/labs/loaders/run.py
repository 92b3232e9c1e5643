"""Runs `clew data`: shows, measures and surveys the loaders, in that order, within a time limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

from clew.labs.loaders.loader_view import view_loader
from clew.labs.loaders.readable_loader import ITERABLE, MAP, TRAIN, ReadableLoader
from clew.labs.loaders.speed.speed_measurement import measure
from clew.labs.loaders.survey.split_survey import survey
from clew.records.data_report import DataOptions, Report
from clew.records.facts.document_facts import BetweenFact, LoaderViewFact, SurveyFact
from clew.records.facts.fact import FactSink
from clew.records.facts.loader_facts import measured_facts

if TYPE_CHECKING:
    from torch import nn

    from clew.labs.snapshot.subject import Subject

MEASURING = 0.5  # share of the time left after the view
LONGEST = 12.0  # seconds of measuring, unless a sweep is requested


def inspect_loaders(
    loaders: Sequence[ReadableLoader],
    options: DataOptions,
    sink: FactSink,
    step: int = 0,
    *,
    subject: Subject | None = None,
    model: nn.Module | None = None,
    progress: Any = None,
) -> Report:
    """Show, measure and survey within the time limit; the results are also written as facts."""
    until = perf_counter() + options.time_limit
    if options.sample is not None:
        loaders = [p for p in loaders if p.dataset is not None][:1] or loaders
    views = tuple(
        view_loader(readable, options.samples if options.sample is None else 0, options.sample)
        for readable in loaders
    )
    for shown in views:
        LoaderViewFact(shown).write(sink, step)
    report = Report(loaders=views)
    if options.sample is not None:
        return report
    if options.measure:
        seconds = (until - perf_counter()) * (MEASURING if options.judge else 1.0)
        seconds = seconds if options.sweep else min(seconds, LONGEST)
        tell = (lambda part: progress(0, 2, f"measuring {part}", 0.0)) if progress is not None else None
        able = [p for p in loaders if p.kind in (MAP, ITERABLE)]
        trained = [p for p in able if p.role == TRAIN][:1] or able[:1]
        for readable in trained:
            found = measure(
                readable, subject=subject, model=model, seconds=seconds, sweep=options.sweep, progress=tell
            )
            report = replace(report, measured=(found,))
            for part in measured_facts(found):
                part.write(sink, step)
    if options.judge:
        report = _surveyed(report, loaders, options, sink, step, until - perf_counter(), progress)
    return report


def _surveyed(
    report: Report,
    loaders: Sequence[ReadableLoader],
    options: DataOptions,
    sink: FactSink,
    step: int,
    seconds: float,
    progress: Any,
) -> Report:
    def tell(done: int, count: int, split: str) -> None:
        if progress is not None:
            progress(1, 2, f"reading {split}", done / max(count, 1))

    through = survey(loaders, everything=options.all, time_limit=max(seconds, 1.0), progress=tell)
    for one in through.surveys:
        SurveyFact(one).write(sink, step)
    for pair in through.between:
        BetweenFact(pair).write(sink, step)
    return replace(report, surveys=through.surveys, betweens=through.between)
