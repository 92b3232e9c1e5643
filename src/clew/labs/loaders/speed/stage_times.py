"""Times each stage of a sample in one process: reading, decoding, every transform, collate.

One pass over the samples serves every measurement: times, sizes, and lengths before
padding.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from time import perf_counter
from typing import Any

import numpy as np

from clew.labs.loaders import dataset_stages as stations
from clew.labs.loaders.pipeline import BATCH_SIZE, ITERABLE, MAP, CannotRead, Pipeline
from clew.labs.loaders.speed.field_sizes import Weighing, described, fields_in
from clew.labs.loaders.speed.loader_rate import described as described_error
from clew.labs.loaders.speed.loader_rate import tensors_bytes
from clew.labs.loaders.speed.read_functions import DECODER, READER, reading_followed
from clew.labs.loaders.stage_trace import StageCall
from clew.records.loader_speed import COLLATE, DATASET, DECODE, READ, TRANSFORM, Stages, StageTime

MOST_SAMPLES = 2048
FEWEST = 8  # samples of a batch before it may be cut short when time runs out
MOST_FAILED = 20  # samples that may raise before it gives up
MOST_KEPT = 64 << 20  # bytes of batches that are kept
KINDS = {
    stations.READ: DATASET,
    stations.METHOD: DATASET,
    stations.FUNCTION: DATASET,
    stations.CALL: TRANSFORM,
    stations.TRANSFORM: TRANSFORM,
    stations.TARGET_TRANSFORM: TRANSFORM,
    stations.COLLATE: COLLATE,
    READER: READ,
    DECODER: DECODE,
}
Key = tuple[str, int]


@dataclass
class TimedLot:
    """The samples of one batch, before and after collate."""

    shapes: list[dict[str, tuple[int, ...]]]  # of the arrays of each sample
    batch: Any  # None if it would be too large to keep


@dataclass
class Looked:
    """The result of one pass over some samples."""

    times: Times
    weights: Weighing = field(default_factory=Weighing)
    lots: list[TimedLot] = field(default_factory=list)
    samples: list[Any] = field(default_factory=list)  # of the largest batch
    kept: int = 0  # bytes of batches
    failed: int = 0
    error: str = ""


class Times:
    """Seconds of each stage, sample by sample."""

    def __init__(self, places: dict[str, tuple[str | None, int | None]] | None = None) -> None:
        self._places = places or {}  # where stages are written, by name
        self._order: dict[Key, tuple[str, str, str | None, int | None]] = {}
        self._now: dict[Key, list[float]] = {}  # seconds and calls in this sample
        self._rows: dict[Key, list[float]] = {}
        self._calls: dict[Key, int] = {}
        self.samples = 0

    def entering(self, call: StageCall) -> None:
        """Stages are listed in the order in which samples reach them."""
        stage = call.stage
        if _key(call) not in self._order:
            place = (stage.file, stage.line) if stage.file else self._places.get(stage.name, (None, None))
            self._order[_key(call)] = (stage.name, KINDS.get(stage.kind, DATASET), *place)

    def left(self, call: StageCall) -> None:
        entry = self._now.setdefault(_key(call), [0.0, 0.0])
        entry[0] += call.own
        entry[1] += 1

    def close(self, samples: int) -> None:
        """Assign what was timed since the last call to this many samples (for collate: to a batch)."""
        for key, (seconds, calls) in self._now.items():
            whole = self._order[key][1] == COLLATE
            share = [seconds / samples] * samples if whole else [seconds]
            self._rows.setdefault(key, []).extend(share)
            self._calls[key] = self._calls.get(key, 0) + int(calls)
        self._now = {}

    def forget(self) -> None:
        """Discard a sample that failed."""
        self._now = {}

    def result(self, extra: tuple[StageTime, ...] = (), notes: tuple[str, ...] = ()) -> Stages:
        """All stages with their shares; `extra` are those measured elsewhere."""
        if not self.samples:
            return Stages(notes=notes)
        filled = {key: np.pad(row, (0, max(self.samples - len(row), 0))) for key, row in self._rows.items()}
        total = sum(float(row.sum()) for row in filled.values()) / self.samples
        total += sum(stage.median for stage in extra)
        found = [self._stage(key, filled[key], total) for key in self._order if key in filled]
        found += [_with_share(stage, total) for stage in extra]
        each = np.sum([row[: self.samples] for row in filled.values()], axis=0)
        added = sum(stage.median for stage in extra)
        middle, late = float(np.median(each)) + added, float(np.quantile(each, 0.95)) + added
        return Stages(tuple(found), self.samples, middle, late, notes=notes)

    def _stage(self, key: Key, row: Any, total: float) -> StageTime:
        name, kind, file, line = self._order[key]
        return StageTime(
            _numbered(name, key, self._order),
            kind,
            float(np.median(row)),
            float(np.quantile(row, 0.95)),
            float(row.sum()) / self.samples / total if total > 0 else 0.0,
            self._calls[key] / self.samples,
            file,
            line,
        )


def _key(call: StageCall) -> Key:
    """A dataset is the same stage each time; two crops in a row are two stages."""
    stage = call.stage
    bound = getattr(stage.value, "__self__", None)  # a method is a new object each time
    return stage.name, id(stage.value) if bound is None else id(bound)


def _numbered(name: str, key: Key, order: dict[Key, Any]) -> str:
    alike = [one for one in order if order[one][0] == name]
    return name if len(alike) == 1 else f"{name} {alike.index(key) + 1}"


def _with_share(stage: StageTime, total: float) -> StageTime:
    share = stage.median / total if total > 0 else 0.0
    return StageTime(stage.name, stage.kind, stage.median, stage.p95, share, stage.calls)


def look(pipeline: Pipeline, seconds: float) -> Looked:
    """Samples and batches as the loader would build them, for about this long; inside `reading()`.

    Raises CannotRead if no samples are available.
    """
    if pipeline.kind not in (MAP, ITERABLE):
        raise CannotRead("single samples are not available because there is no dataset")
    times = Times({stage.name: (stage.file, stage.line) for stage in pipeline.stages})
    found, began = Looked(times), perf_counter()
    with pipeline.following(times.left, times.entering):
        assert pipeline.follower is not None
        with reading_followed(pipeline.follower):
            for wanted in _wanted(pipeline):
                _one_batch(pipeline, wanted, found, began + seconds)
                late = perf_counter() - began >= seconds
                if late or times.samples >= MOST_SAMPLES or found.failed > MOST_FAILED:
                    break
    return found


def _wanted(pipeline: Pipeline) -> Iterator[Iterator[Any]]:
    """For each batch, calls that return its samples one by one."""
    if pipeline.kind == MAP:
        for indices in pipeline.indices():
            yield ((lambda i=i: pipeline.sample(i)) for i in indices)
        return
    samples = pipeline.samples()
    size = pipeline.batch_size or (1 if pipeline.collate is None else BATCH_SIZE)
    ended: list[bool] = []
    while not ended:
        yield islice(_nexts(samples, ended), size)


def _nexts(samples: Iterator[Any], ended: list[bool]) -> Iterator[Any]:
    """Calls of next, up to the end of the samples."""
    while not ended:
        yield lambda: _next(samples, ended)


_END = object()


def _next(samples: Iterator[Any], ended: list[bool]) -> Any:
    """The next sample, or _END; an iterator that has raised has ended too."""
    ended.append(True)
    sample = next(samples, _END)
    if sample is not _END:
        ended.clear()
    return sample


def _one_batch(pipeline: Pipeline, wanted: Iterator[Any], found: Looked, until: float) -> None:
    samples: list[Any] = []
    for read in wanted:
        try:
            sample = read()
        except Exception as error:  # noqa: BLE001 - a sample of the user's own that fails
            _note(found, error)
            continue
        if sample is _END:
            found.times.forget()
            break
        found.times.close(1)
        found.times.samples += 1
        found.weights.add(sample)
        samples.append(sample)
        if perf_counter() > until and len(samples) >= FEWEST:
            break
    if samples:
        found.samples = samples if len(samples) >= len(found.samples) else found.samples
        _collate(pipeline, samples, found)


def _collate(pipeline: Pipeline, samples: list[Any], found: Looked) -> None:
    shapes = [_shapes(sample) for sample in samples]
    if pipeline.collate is None:
        found.lots.append(TimedLot(shapes, samples[0]))
        return
    try:
        batch = pipeline.collated(samples)
    except Exception as error:  # noqa: BLE001 - as above
        _note(found, error)
        return
    found.times.close(len(samples))
    found.kept += tensors_bytes(batch)
    found.lots.append(TimedLot(shapes, batch if found.kept < MOST_KEPT else None))


def _shapes(sample: Any) -> dict[str, tuple[int, ...]]:
    return {name: described(value)[0] for name, value in fields_in(sample).items()}


def _note(found: Looked, error: Exception) -> None:
    found.times.forget()
    found.failed += 1
    found.error = described_error(error)
