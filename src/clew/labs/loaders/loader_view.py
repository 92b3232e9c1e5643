"""The view of one loader: samples, the same samples as the model gets them, and the differences."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from clew.labs.loaders.readable_loader import BATCHES, ITERABLE, MAP, MODEL, ReadableLoader
from clew.labs.loaders.sample_path import fingerprint, path_of
from clew.labs.loaders.token_decoder import TokenDecoder
from clew.labs.loaders.user_errors import error_line
from clew.labs.loaders.value_view import (
    label_field,
    label_text,
    parts_of,
    rows_of,
    view_value,
)
from clew.labs.snapshot.dataset_stages import COLLATE, READ, datasets_in
from clew.labs.snapshot.sample_fields import sample_fields
from clew.records.errors import CannotRead
from clew.records.sample_views import FieldView, LoaderView, SamplePath, ValueView

CHANNELS = (1, 3, 4)
SMALLEST = 8  # rows and columns of an image

SEEDS = range(8)  # under which a sample must differ from itself to be random
REDRAWN = "reading is random: the dataset's samples were drawn again; the model's are from training"


def view_loader(readable: ReadableLoader, number: int = 8, sample: int | None = None) -> LoaderView:
    """This many samples, before and after batching; with `sample`, that one stage by stage."""
    notes: list[str] = []
    indices = readable.drawn[0] if readable.drawn else None
    with readable.reading():
        decoder = TokenDecoder(readable)
        chosen = _chosen(readable, number, indices)
        samples = _samples(readable, number, chosen, decoder, notes)
        batch = _batch(readable, chosen, notes)
        known = chosen if indices or not readable.delivered else None
        rows, place = _rows(readable, batch, number, known, decoder)
        way = _way(readable, sample, decoder)
        stages = _passed(readable, way, chosen)
        drawn = _draws(readable, chosen) if known and rows and samples else False
    indexed = readable.sampler is not None and readable.kind == MAP
    shown = LoaderView(
        name=readable.name,
        role=readable.role,
        number=readable.number,
        kind=readable.kind,
        file=readable.file,
        line=readable.line,
        dataset=_dataset(readable),
        length=readable.length,
        batch_size=readable.batch_size,
        workers=readable.workers,
        sampler=type(readable.sampler).__name__ if indexed else "",
        shuffled=readable.shuffled,
        stages=stages,
        samples=tuple(samples),
        rows=tuple(rows),
        rows_of=place,
        batch=parts_of(batch) if batch is not None else (),
        inputs=_inputs(readable),
        way=way,
    )
    return _with_remarks(shown, notes, readable, drawn)


def _dataset(readable: ReadableLoader) -> str:
    """`Subset of Digits`."""
    if readable.dataset is None:
        return ""
    chain = [type(dataset).__name__ for dataset, _ in datasets_in(readable.dataset)]
    return " of ".join(list(dict.fromkeys(chain))[:4])


def _draws(readable: ReadableLoader, chosen: Sequence[int]) -> bool:
    """Whether reading the same sample with another random seed gives another result."""
    try:
        first, *others = (fingerprint(readable.sample(chosen[0], seed=seed)) for seed in SEEDS)
    except Exception:  # noqa: BLE001 - the user's dataset; what it raises has been noted
        return False
    return any(other != first for other in others)


def _with_remarks(shown: LoaderView, notes: list[str], readable: ReadableLoader, drawn: bool) -> LoaderView:
    if readable.note and readable.kind == MAP:
        notes.append(f"{readable.note}; its attributes were restored afterwards")
    remarks = [*([REDRAWN] if drawn else []), *remarks_on(shown)]
    return replace(shown, remarks=tuple(remarks), notes=tuple(dict.fromkeys(notes)))


def _chosen(readable: ReadableLoader, number: int, indices: Sequence[int] | None) -> list[int]:
    """The samples of the first batch; else the first ones of a new epoch."""
    if readable.kind != MAP:
        return []
    if indices:
        return list(indices)
    try:
        return next(readable.indices(), [])
    except Exception:  # noqa: BLE001 - the user's sampler: start from the beginning
        return list(range(min(number, readable.length or 0)))


def _samples(
    readable: ReadableLoader, number: int, chosen: Sequence[int], decoder: TokenDecoder, notes: list[str]
) -> list[ValueView]:
    if readable.kind == MAP:
        return [_sample(readable, index, decoder) for index in _enough(readable, number, chosen)]
    if readable.kind != ITERABLE:
        return []
    found = []
    try:
        for n, value in enumerate(itertools.islice(readable.samples(), number)):
            found.append(view_value(value, f"sample {n}", decoder, index=n))
    except CannotRead as reason:
        notes.append(str(reason))
    except Exception as error:  # noqa: BLE001 - the user's dataset: what came before is shown
        found.append(ValueView(f"sample {len(found)}", len(found), error=error_line(error)))
    return found


def _enough(readable: ReadableLoader, number: int, chosen: Sequence[int]) -> list[int]:
    """The samples of the batch; if more are requested than it has, further ones."""
    if number <= len(chosen):
        return list(chosen[:number])
    further: list[int] = []
    with contextlib.suppress(Exception):  # the user's sampler; use those of the batch
        further = list(itertools.islice(itertools.chain.from_iterable(readable.indices()), 4 * number))
    return list(dict.fromkeys([*chosen, *further]))[:number]


def _sample(readable: ReadableLoader, index: int, decoder: TokenDecoder) -> ValueView:
    try:
        return view_value(readable.sample(index), f"sample {index}", decoder, index=index)
    except Exception as error:  # noqa: BLE001 - the user's dataset
        return ValueView(f"sample {index}", index, error=error_line(error))


def _batch(readable: ReadableLoader, chosen: Sequence[int], notes: list[str]) -> Any:
    """As it was delivered; if none was, built here."""
    if readable.delivered:
        return readable.delivered[0]
    try:
        if readable.kind == MAP and chosen and readable.collate is not None:
            return readable.batch(chosen)
        return next(iter(readable.batches()), None)
    except CannotRead as reason:
        notes.append(str(reason))
    except Exception as error:  # noqa: BLE001 - the user's dataset or collate
        notes.append(f"no batch could be created: {error_line(error)}")
    return None


def _rows(
    readable: ReadableLoader, batch: Any, number: int, indices: Sequence[int] | None, decoder: TokenDecoder
) -> tuple[list[ValueView], str]:
    """The model's input, with the labels of the batch; without a model, the batch's rows."""
    if batch is None:
        return [], ""
    labels = _labels(batch, number, decoder)
    value, what = batch, "batch"
    if readable.inputs and readable.kind != MODEL:
        value, what = _arguments(readable.inputs[0]), "model"
    parts = rows_of(value, number)
    if what == "model" and len(parts) < min(number, len(rows_of(batch, number))):
        parts, what = rows_of(batch, number), "batch"
    views = []
    for n, row in enumerate(parts):
        index = indices[n] if indices is not None and n < len(indices) else None
        title = f"sample {index}" if index is not None else f"row {n}"
        label = labels[n] if n < len(labels) and labels[n] else None
        views.append(view_value(row, title, decoder, index=index, label=label))
    return views, "model" if readable.kind == MODEL else what


def _labels(batch: Any, number: int, decoder: TokenDecoder) -> list[str]:
    found = []
    for row in rows_of(batch, number):
        fields = sample_fields(row)
        target = label_field(fields)
        found.append(label_text(fields[target], decoder) if target is not None else "")
    return found


def _arguments(inputs: Any) -> Any:
    args, kwargs = inputs
    if len(args) == 1 and not kwargs:
        return args[0]
    return {**{f"input[{n}]": a for n, a in enumerate(args)}, **kwargs}


def _inputs(readable: ReadableLoader) -> Any:
    if not readable.inputs:
        return ()
    value = _arguments(readable.inputs[0])
    named = value if isinstance(value, Mapping) else {"input": value}
    return parts_of(named)


def _way(readable: ReadableLoader, sample: int | None, decoder: TokenDecoder) -> SamplePath | None:
    if sample is None or readable.kind in (BATCHES, MODEL):
        return None
    if readable.length is not None and not 0 <= sample < readable.length:
        return SamplePath(sample, error=f"there is no sample {sample}: the dataset has {readable.length}")
    return path_of(readable, sample, decoder)


def _passed(readable: ReadableLoader, way: SamplePath | None, chosen: Sequence[int]) -> tuple[str, ...]:
    """Names of the stages: the dataset, its stages in order, and collate."""
    if readable.kind in (BATCHES, MODEL):
        return ()
    passed = _followed(readable, way, chosen)
    inner = [dataset for dataset, _ in datasets_in(readable.dataset)][-1:]
    first = [type(dataset).__name__ for dataset in inner]
    rest = [name for name, kind in passed if kind not in (READ, COLLATE)]
    return tuple(dict.fromkeys([*first, *rest, *(name for name, kind in passed if kind == COLLATE)]))


def _followed(
    readable: ReadableLoader, way: SamplePath | None, chosen: Sequence[int]
) -> list[tuple[str, str]]:
    """As seen by a sample that passes them; if none can be read, as they were found."""
    found = [(s.name, s.kind) for s in readable.stages]
    if way is not None:
        return [(s.name, s.kind) for s in way.stages] or found
    calls: list[tuple[str, str]] = []
    if readable.kind == MAP and chosen:
        with contextlib.suppress(Exception):
            with readable.following(lambda call: calls.append((call.stage.name, call.stage.kind))):
                readable.sample(chosen[0])
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
