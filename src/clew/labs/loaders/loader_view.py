"""The view of one loader: samples, the same samples as the model gets them, and the differences."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from clew.labs.loaders.dataset_stages import COLLATE, READ, datasets_in
from clew.labs.loaders.pipeline import BATCHES, ITERABLE, MAP, MODEL, Pipeline
from clew.labs.loaders.sample_path import fingerprint, path_of
from clew.labs.loaders.token_decoder import TokenDecoder
from clew.labs.loaders.user_errors import error_line
from clew.labs.loaders.value_view import (
    label_field,
    label_text,
    named_fields,
    parts_of,
    rows_of,
    view_value,
)
from clew.records.errors import CannotRead
from clew.records.sample_views import FieldView, LoaderView, SamplePath, ValueView

CHANNELS = (1, 3, 4)
SMALLEST = 8  # rows and columns of an image

SEEDS = range(8)  # under which a sample must differ from itself to be random
REDRAWN = (
    "reading uses random numbers: the dataset's samples were drawn again, the model's are those of training"
)


def view_loader(pipeline: Pipeline, number: int = 8, sample: int | None = None) -> LoaderView:
    """This many samples, before and after batching; with `sample`, that one stage by stage."""
    notes: list[str] = []
    indices = pipeline.drawn[0] if pipeline.drawn else None
    with pipeline.reading():
        decoder = TokenDecoder(pipeline)
        chosen = _chosen(pipeline, number, indices)
        samples = _samples(pipeline, number, chosen, decoder, notes)
        batch = _batch(pipeline, chosen, notes)
        known = chosen if indices or not pipeline.delivered else None
        rows, place = _rows(pipeline, batch, number, known, decoder)
        way = _way(pipeline, sample, decoder)
        stages = _passed(pipeline, way, chosen)
        drawn = _draws(pipeline, chosen) if known and rows and samples else False
    indexed = pipeline.sampler is not None and pipeline.kind == MAP
    shown = LoaderView(
        name=pipeline.name,
        role=pipeline.role,
        number=pipeline.number,
        kind=pipeline.kind,
        file=pipeline.file,
        line=pipeline.line,
        dataset=_dataset(pipeline),
        length=pipeline.length,
        batch_size=pipeline.batch_size,
        workers=pipeline.workers,
        sampler=type(pipeline.sampler).__name__ if indexed else "",
        shuffled=pipeline.shuffled,
        stages=stages,
        samples=tuple(samples),
        rows=tuple(rows),
        rows_of=place,
        batch=parts_of(batch) if batch is not None else (),
        inputs=_inputs(pipeline),
        way=way,
    )
    return _with_remarks(shown, notes, pipeline, drawn)


def _dataset(pipeline: Pipeline) -> str:
    """`Subset of Digits`."""
    if pipeline.dataset is None:
        return ""
    chain = [type(dataset).__name__ for dataset, _ in datasets_in(pipeline.dataset)]
    return " of ".join(list(dict.fromkeys(chain))[:4])


def _draws(pipeline: Pipeline, chosen: Sequence[int]) -> bool:
    """Whether reading the same sample with another random seed gives another result."""
    try:
        first, *others = (fingerprint(pipeline.sample(chosen[0], seed=seed)) for seed in SEEDS)
    except Exception:  # noqa: BLE001 - the user's dataset; what it raises has been noted
        return False
    return any(other != first for other in others)


def _with_remarks(shown: LoaderView, notes: list[str], pipeline: Pipeline, drawn: bool) -> LoaderView:
    if pipeline.note and pipeline.kind == MAP:
        notes.append(f"{pipeline.note}; its attributes were restored afterwards")
    remarks = [*([REDRAWN] if drawn else []), *remarks_on(shown)]
    return replace(shown, remarks=tuple(remarks), notes=tuple(dict.fromkeys(notes)))


def _chosen(pipeline: Pipeline, number: int, indices: Sequence[int] | None) -> list[int]:
    """The samples of the first batch; else the first ones of a new epoch."""
    if pipeline.kind != MAP:
        return []
    if indices:
        return list(indices)
    try:
        return next(pipeline.indices(), [])
    except Exception:  # noqa: BLE001 - the user's sampler: start from the beginning
        return list(range(min(number, pipeline.length or 0)))


def _samples(
    pipeline: Pipeline, number: int, chosen: Sequence[int], decoder: TokenDecoder, notes: list[str]
) -> list[ValueView]:
    if pipeline.kind == MAP:
        return [_sample(pipeline, index, decoder) for index in _enough(pipeline, number, chosen)]
    if pipeline.kind != ITERABLE:
        return []
    found = []
    try:
        for n, value in enumerate(itertools.islice(pipeline.samples(), number)):
            found.append(view_value(value, f"sample {n}", decoder, index=n))
    except CannotRead as reason:
        notes.append(str(reason))
    except Exception as error:  # noqa: BLE001 - the user's dataset: what came before is shown
        found.append(ValueView(f"sample {len(found)}", len(found), error=error_line(error)))
    return found


def _enough(pipeline: Pipeline, number: int, chosen: Sequence[int]) -> list[int]:
    """The samples of the batch; if more are requested than it has, further ones."""
    if number <= len(chosen):
        return list(chosen[:number])
    further: list[int] = []
    with contextlib.suppress(Exception):  # the user's sampler; use those of the batch
        further = list(itertools.islice(itertools.chain.from_iterable(pipeline.indices()), 4 * number))
    return list(dict.fromkeys([*chosen, *further]))[:number]


def _sample(pipeline: Pipeline, index: int, decoder: TokenDecoder) -> ValueView:
    try:
        return view_value(pipeline.sample(index), f"sample {index}", decoder, index=index)
    except Exception as error:  # noqa: BLE001 - the user's dataset
        return ValueView(f"sample {index}", index, error=error_line(error))


def _batch(pipeline: Pipeline, chosen: Sequence[int], notes: list[str]) -> Any:
    """As it was delivered; if none was, built here."""
    if pipeline.delivered:
        return pipeline.delivered[0]
    try:
        if pipeline.kind == MAP and chosen and pipeline.collate is not None:
            return pipeline.batch(chosen)
        return next(iter(pipeline.batches()), None)
    except CannotRead as reason:
        notes.append(str(reason))
    except Exception as error:  # noqa: BLE001 - the user's dataset or collate
        notes.append(f"no batch could be created: {error_line(error)}")
    return None


def _rows(
    pipeline: Pipeline, batch: Any, number: int, indices: Sequence[int] | None, decoder: TokenDecoder
) -> tuple[list[ValueView], str]:
    """The model's input, with the labels of the batch; without a model, the batch's rows."""
    if batch is None:
        return [], ""
    labels = _labels(batch, number, decoder)
    value, what = batch, "batch"
    if pipeline.inputs and pipeline.kind != MODEL:
        value, what = _arguments(pipeline.inputs[0]), "model"
    parts = rows_of(value, number)
    if what == "model" and len(parts) < min(number, len(rows_of(batch, number))):
        parts, what = rows_of(batch, number), "batch"
    views = []
    for n, row in enumerate(parts):
        index = indices[n] if indices is not None and n < len(indices) else None
        title = f"sample {index}" if index is not None else f"row {n}"
        label = labels[n] if n < len(labels) and labels[n] else None
        views.append(view_value(row, title, decoder, index=index, label=label))
    return views, "model" if pipeline.kind == MODEL else what


def _labels(batch: Any, number: int, decoder: TokenDecoder) -> list[str]:
    found = []
    for row in rows_of(batch, number):
        fields = dict(named_fields(row))
        target = label_field(fields)
        found.append(label_text(fields[target], decoder) if target is not None else "")
    return found


def _arguments(inputs: Any) -> Any:
    args, kwargs = inputs
    if len(args) == 1 and not kwargs:
        return args[0]
    return {**{f"input[{n}]": a for n, a in enumerate(args)}, **kwargs}


def _inputs(pipeline: Pipeline) -> Any:
    if not pipeline.inputs:
        return ()
    value = _arguments(pipeline.inputs[0])
    named = value if isinstance(value, Mapping) else {"input": value}
    return parts_of(named)


def _way(pipeline: Pipeline, sample: int | None, decoder: TokenDecoder) -> SamplePath | None:
    if sample is None or pipeline.kind in (BATCHES, MODEL):
        return None
    if pipeline.length is not None and not 0 <= sample < pipeline.length:
        return SamplePath(sample, error=f"there is no sample {sample}: the dataset has {pipeline.length}")
    return path_of(pipeline, sample, decoder)


def _passed(pipeline: Pipeline, way: SamplePath | None, chosen: Sequence[int]) -> tuple[str, ...]:
    """Names of the stages: the dataset, its stages in order, and collate."""
    if pipeline.kind in (BATCHES, MODEL):
        return ()
    passed = _followed(pipeline, way, chosen)
    inner = [dataset for dataset, _ in datasets_in(pipeline.dataset)][-1:]
    first = [type(dataset).__name__ for dataset in inner]
    rest = [name for name, kind in passed if kind not in (READ, COLLATE)]
    return tuple(dict.fromkeys([*first, *rest, *(name for name, kind in passed if kind == COLLATE)]))


def _followed(pipeline: Pipeline, way: SamplePath | None, chosen: Sequence[int]) -> list[tuple[str, str]]:
    """As seen by a sample that passes them; if none can be read, as they were found."""
    found = [(s.name, s.kind) for s in pipeline.stages]
    if way is not None:
        return [(s.name, s.kind) for s in way.stages] or found
    calls: list[tuple[str, str]] = []
    if pipeline.kind == MAP and chosen:
        with contextlib.suppress(Exception):
            with pipeline.following(lambda call: calls.append((call.stage.name, call.stage.kind))):
                pipeline.sample(chosen[0])
            return [*calls, *(pair for pair in found if pair[1] == COLLATE)]
    return found


def remarks_on(shown: LoaderView) -> Iterator[str]:
    """One line for each."""
    sample = _main(next((view.parts for view in shown.samples if view.parts), ()))
    batch, given = _main(shown.batch), _main(shown.inputs)
    yield from _casts(sample, batch)
    yield from _reshaped(batch, given)
    last = given or batch
    if last is not None:
        yield from _scale(last, "the model gets" if given is not None else "batches have")
        yield from _channels(last)
    for part in shown.inputs or shown.batch:
        if part.bad:
            yield f"NaN or infinite values in {_called(part)}: {part.bad}"


def _main(parts: tuple[FieldView, ...]) -> FieldView | None:
    sized = [part for part in parts if part.shape is not None and part.dtype]
    return max(sized, key=_size, default=None)


def _size(part: FieldView) -> int:
    return math.prod(part.shape or ())


def _called(part: FieldView) -> str:
    return f"field {part.name}" if part.name.isdigit() else part.name


def _casts(sample: FieldView | None, batch: FieldView | None) -> Iterator[str]:
    if sample is None or batch is None or sample.dtype == batch.dtype or not sample.dtype or not batch.dtype:
        return
    yield f"batching turns {sample.dtype} into {batch.dtype}"


def _reshaped(batch: FieldView | None, given: FieldView | None) -> Iterator[str]:
    if batch is None or given is None or batch.shape is None or given.shape is None:
        return
    if batch.dtype != given.dtype:
        yield f"between loader and model, {batch.dtype} becomes {given.dtype}"
    if batch.shape != given.shape and _size(batch) == _size(given):
        yield f"between loader and model, {_shape(batch)} becomes {_shape(given)}"
    if batch.shape != given.shape or batch.low is None or batch.high is None:
        return
    if given.low is None or given.high is None:
        return
    width = max(batch.high - batch.low, 1e-12)
    if abs(batch.high - given.high) + abs(batch.low - given.low) > 0.05 * width:
        before, after = f"{batch.low:.4g} to {batch.high:.4g}", f"{given.low:.4g} to {given.high:.4g}"
        yield f"between loader and model, values from {before} become {after}"


def _scale(part: FieldView, who: str) -> Iterator[str]:
    if part.low is None or part.high is None or part.mean is None or part.std is None:
        return
    if not part.dtype.startswith(("float", "bfloat")):
        return
    if part.low >= 0 and 200 < part.high <= 255:
        yield f"{who} values from 0 to 255: they are not scaled"
    elif abs(part.mean) < 0.2 and 0.7 < part.std < 1.4:
        yield f"{who} normalised values: mean {part.mean:.2g}, standard deviation {part.std:.2g}"
    elif part.low >= 0 and part.high <= 1:
        yield (
            f"{who} values from {part.low:.2g} to {part.high:.2g}, mean {part.mean:.2g}: scaled, but "
            "not centred"
        )


def _channels(part: FieldView) -> Iterator[str]:
    shape = part.shape or ()
    if len(shape) != 4 or min(shape[1:3]) < SMALLEST:
        return
    if shape[3] in CHANNELS and shape[1] not in CHANNELS:
        yield f"channels come last ({_shape(part)}); torch's convolutions expect channels in dimension 1"


def _shape(part: FieldView) -> str:
    return "×".join(str(length) for length in part.shape or ()) or "one number"
