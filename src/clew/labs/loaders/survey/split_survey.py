"""Surveys the datasets of a program split by split, and compares the splits.

Reads a part of the dataset unless all of it is requested: blocks of consecutive samples, spread over
the dataset and read in random order, so that a pass that runs out of time has still covered all parts.
Everything is read inside `ReadableLoader.reading()`, one by one, in this process.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
import torch

from clew.labs.loaders.field_values import Leaf, main_input
from clew.labs.loaders.readable_loader import EVAL, ITERABLE, MAP, TRAIN, ReadableLoader
from clew.labs.loaders.survey.copied_samples import between, chosen_of
from clew.labs.loaders.survey.dataset_labels import label_of
from clew.labs.loaders.survey.sample_reader import BARE, Reader
from clew.labs.loaders.survey.survey_pass import Pass, Progress
from clew.labs.loaders.token_decoder import TokenDecoder
from clew.labs.snapshot.sample_exhibits import shown
from clew.records.dataset_survey import LABEL, Between, DatasetSurvey, Duplicates, SurveyExhibit

LIMIT = 2000  # samples of a split, unless all are requested
MOST_OUTLIERS = 4  # that are shown
MOST_TEXT = 400  # characters of a text that is shown


@dataclass(frozen=True)
class SurveyResult:
    """The survey of all splits of a program."""

    surveys: tuple[DatasetSurvey, ...] = ()
    between: tuple[Between, ...] = ()


def survey(
    loaders: Sequence[ReadableLoader],
    *,
    everything: bool = False,
    limit: int = LIMIT,
    time_limit: float = 30.0,
    progress: Progress | None = None,
) -> SurveyResult:
    """Survey the dataset of every loader, and compare them."""
    chosen = _once_each(loaders)
    began = perf_counter()
    passes = [Pass(readable, None if everything else limit, progress) for readable in chosen]
    for one in passes:
        one.prepare()
    if any(one.reader is not None and one.reader.how == BARE for one in passes):
        for one in passes:
            one.drop_transforms()
    for number, one in enumerate(passes):
        left = time_limit - (perf_counter() - began)
        one.deadline = perf_counter() + max(left, 0.0) / (len(passes) - number)
        one.run()
    return SurveyResult(tuple(_with_exhibits(p) for p in passes), tuple(_compared(passes, loaders)))


def _with_exhibits(one: Pass) -> DatasetSurvey:
    made = one.survey()
    if one.reader is None:
        return made
    with one.readable.reading():
        return replace(made, exhibits=exhibits_of(one.reader, made, one.roles))


def _once_each(loaders: Sequence[ReadableLoader]) -> list[ReadableLoader]:
    """One loader per dataset; a program may create new loaders in every epoch."""
    found: dict[int, ReadableLoader] = {}
    for readable in loaders:
        if readable.kind in (MAP, ITERABLE):
            found.setdefault(id(readable.dataset), readable)
    return list(found.values())


def _compared(passes: Sequence[Pass], loaders: Sequence[ReadableLoader]) -> Iterator[Between]:
    """Every evaluation split with every training split."""
    by_dataset = {id(p.readable.dataset): p for p in passes}
    usable = [p for p in loaders if id(p.dataset) in by_dataset]
    trained = [p for p in usable if p.role == TRAIN] or usable[:1]
    seen: set[tuple[int, int]] = set()
    for first, second in itertools.product(trained, usable):
        key = (id(first.dataset), id(second.dataset))
        if second in trained or second.role == TRAIN or key in seen:
            continue
        seen.add(key)
        yield _between(first, second, by_dataset[key[0]], by_dataset[key[1]])


def _between(first: ReadableLoader, second: ReadableLoader, one: Pass, other: Pass) -> Between:
    made = Between(
        first.name,
        second.name,
        (first.role or TRAIN, second.role or EVAL),
        file=second.file,
        line=second.line,
    )
    if one is other:
        return replace(made, same_dataset=True, shared=one.total or one.samples_read)
    (base, indices), (other_base, other_indices) = chosen_of(first.dataset), chosen_of(second.dataset)
    if base is other_base:
        both = [
            set(range(p.total or 0)) if chosen is None else set(chosen)
            for p, chosen in ((one, indices), (other, other_indices))
        ]
        made = replace(made, shared=len(both[0] & both[1]))
    readers = [p.reader for p in (one, other) if p.reader is not None]
    reason = next((r.reason for r in readers if r.reason), "")
    if not reason and len(readers) == 2 and not readers[0].is_comparable(readers[1]):
        reason = "they are augmented randomly or differently, and the augmentation can't be switched off"
    if reason:
        return replace(made, exact=Duplicates(reason=reason), near=Duplicates(reason=reason))
    exact, near = between(one.kept, other.kept, one.coverage)
    made = replace(made, coverage=round(one.coverage, 6), exact=exact, near=near)
    return replace(made, exhibits=exhibits_between(made, one.reader, other.reader, one.roles))


# -- the samples that are shown: a pair of copies, an outlier --


def exhibits_of(reader: Reader, survey: DatasetSurvey, roles: Mapping[str, str]) -> tuple[SurveyExhibit, ...]:
    """The exhibits of one split. Must be called inside `ReadableLoader.reading()`."""
    found: list[SurveyExhibit] = []
    for about, copies in (("exact", survey.exact), ("near", survey.near)):
        for pair in copies.pairs[:1]:
            both = (pair.first, pair.second) if about == "near" or copies.conflicting else (pair.first,)
            note = "" if len(both) == 2 else f"the same as sample {pair.second}"
            found += [e for index in both for e in _shown(reader, index, about, roles, note)]
    for outlier in survey.outliers[:MOST_OUTLIERS]:
        found += _shown(reader, outlier.index, "outlier", roles, outlier.why)
    return tuple(found)


def exhibits_between(
    made: Between, one: Reader | None, other: Reader | None, roles: Mapping[str, str]
) -> tuple[SurveyExhibit, ...]:
    """The first pair of two splits."""
    if one is None or other is None:
        return ()
    found: list[SurveyExhibit] = []
    for about, copies in (("exact", made.exact), ("near", made.near)):
        for pair in copies.pairs[:1]:
            with one.readable.reading():
                found += _shown(one, pair.first, about, roles, f"in {made.first}")
            with other.readable.reading():
                found += _shown(other, pair.second, about, roles, f"in {made.second}")
    return tuple(found)


def _shown(
    reader: Reader, index: int, about: str, roles: Mapping[str, str], note: str
) -> Iterator[SurveyExhibit]:
    try:
        leaves = reader.read_for_comparing(index) or reader.read(index)
    except Exception:  # noqa: BLE001 - the dataset's own; there is nothing to show then
        return
    main = main_input(leaves, roles)
    label = label_of(next((leaf for name, leaf in leaves.items() if roles.get(name) == LABEL), None))
    drawn = _drawn(main, TokenDecoder(reader.readable)) if main is not None else None
    if drawn is None:
        return
    said = [f"sample {index}", f"labelled {label}" if label is not None else "", note]
    caption = ", ".join(part for part in said if part)
    yield SurveyExhibit(about, index, drawn[0], caption, drawn[1])


def _drawn(leaf: Leaf, decoder: TokenDecoder) -> tuple[str, Any] | None:
    if leaf.text is not None:
        return "text", str(leaf.text)[:MOST_TEXT]
    if leaf.array is None or not leaf.array.size:
        return None
    if leaf.kind == "tokens":
        words = decoder.text([int(v) for v in leaf.array.reshape(-1)[:MOST_TEXT]])
        if words is not None:
            return "text", words[:MOST_TEXT]
    return shown(torch.from_numpy(np.array(leaf.array)))
