"""Surveys the datasets of a program split by split, and compares the splits.

Reads a part of the dataset unless all of it is requested: blocks of consecutive samples, spread over
the dataset and read in random order, so that a pass that runs out of time has still covered all parts.
Everything is read inside `Pipeline.reading()`, one by one, in this process.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

from clew.labs.loaders.look.sample_reader import BARE
from clew.labs.loaders.pipeline import EVAL, ITERABLE, MAP, TRAIN, Pipeline
from clew.labs.loaders.survey.copied_samples import between, chosen_of
from clew.labs.loaders.survey.survey_exhibits import exhibits_between
from clew.labs.loaders.survey.survey_pass import Pass, Progress
from clew.records.dataset_survey import Between, DatasetSurvey

LIMIT = 2000  # samples of a split, unless all are requested


@dataclass(frozen=True)
class SurveyResult:
    """The survey of all splits of a program."""

    surveys: tuple[DatasetSurvey, ...] = ()
    between: tuple[Between, ...] = ()


def survey(
    pipelines: Sequence[Pipeline],
    *,
    everything: bool = False,
    limit: int = LIMIT,
    time_limit: float = 30.0,
    progress: Progress | None = None,
) -> SurveyResult:
    """Survey the dataset of every pipeline, and compare them."""
    chosen = _once_each(pipelines)
    began = perf_counter()
    passes = [Pass(pipeline, None if everything else limit, progress) for pipeline in chosen]
    for one in passes:
        one.prepare()
    if any(one.reader is not None and one.reader.how == BARE for one in passes):
        for one in passes:
            one.lay_bare()
    for number, one in enumerate(passes):
        left = time_limit - (perf_counter() - began)
        one.deadline = perf_counter() + max(left, 0.0) / (len(passes) - number)
        one.run()
    return SurveyResult(tuple(p.survey() for p in passes), tuple(_compared(passes, pipelines)))


def _once_each(pipelines: Sequence[Pipeline]) -> list[Pipeline]:
    """One pipeline per dataset; a program may create new loaders in every epoch."""
    found: dict[int, Pipeline] = {}
    for pipeline in pipelines:
        if pipeline.kind in (MAP, ITERABLE):
            found.setdefault(id(pipeline.dataset), pipeline)
    return list(found.values())


def _compared(passes: Sequence[Pass], pipelines: Sequence[Pipeline]) -> Iterator[Between]:
    """Every evaluation split with every training split."""
    by_dataset = {id(p.pipeline.dataset): p for p in passes}
    usable = [p for p in pipelines if id(p.dataset) in by_dataset]
    trained = [p for p in usable if p.role == TRAIN] or usable[:1]
    seen: set[tuple[int, int]] = set()
    for first, second in itertools.product(trained, usable):
        key = (id(first.dataset), id(second.dataset))
        if second in trained or second.role == TRAIN or key in seen:
            continue
        seen.add(key)
        yield _between(first, second, by_dataset[key[0]], by_dataset[key[1]])


def _between(first: Pipeline, second: Pipeline, one: Pass, other: Pass) -> Between:
    made = Between(
        first.name,
        second.name,
        (first.role or TRAIN, second.role or EVAL),
        file=second.file,
        line=second.line,
    )
    if one is other:
        return replace(made, same_dataset=True, shared=one.total or one.looked)
    (base, held), (other_base, other_held) = chosen_of(first.dataset), chosen_of(second.dataset)
    if base is other_base:
        both = [
            set(range(p.total or 0)) if chosen is None else set(chosen)
            for p, chosen in ((one, held), (other, other_held))
        ]
        made = replace(made, shared=len(both[0] & both[1]))
    readers = [p.reader for p in (one, other) if p.reader is not None]
    reason = next((r.reason for r in readers if r.reason), "")
    if not reason and len(readers) == 2 and not readers[0].is_comparable(readers[1]):
        reason = "they are augmented randomly or differently, and the augmentation can't be switched off"
    if reason:
        nothing = replace(made.exact, reason=reason)
        return replace(made, exact=nothing, near=nothing)
    exact, near = between(one.kept, other.kept, one.coverage)
    made = replace(made, coverage=round(one.coverage, 6), exact=exact, near=near)
    return replace(made, exhibits=exhibits_between(made, one.reader, other.reader, one.roles))
