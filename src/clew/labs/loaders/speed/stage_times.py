"""Times each stage of a sample in one process: reading, decoding, every transform, collate.

One pass over the samples serves every measurement: times, sizes, and lengths before padding. The user's
lines that take the time are found in another pass, by sampling Python's stack.
"""

from __future__ import annotations

import linecache
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import repeat
from time import perf_counter
from typing import Any

import numpy as np

from clew.hooks.entry.user_line import USER, kind_of
from clew.labs.loaders.readable_loader import BATCH_SIZE, ITERABLE, MAP, ReadableLoader
from clew.labs.loaders.speed.field_sizes import FieldSizes, described
from clew.labs.loaders.speed.loader_rate import tensors_bytes
from clew.labs.loaders.stage_trace import DECODER, READER, StageCall, reading_followed
from clew.labs.loaders.user_errors import worker_error_line
from clew.labs.snapshot import dataset_stages
from clew.labs.snapshot.sample_fields import sample_fields
from clew.records.errors import CannotRead
from clew.records.loader_speed import COLLATE, DATASET, DECODE, READ, TRANSFORM, HotLine, Stages, StageTime
from clew.records.site import Line

MOST_SAMPLES = 2048
FEWEST = 8  # samples of a batch before it may be cut short when time runs out
MOST_FAILED = 20  # samples that may raise before it gives up
MOST_KEPT = 64 << 20  # bytes of batches that are kept
INTERVAL = 0.001  # seconds between two samples of the stack
MOST_LINES = 5
LEAST_SHARE = 0.05
FEWEST_STACKS = 20  # with fewer, shares mean nothing
KINDS = {
    dataset_stages.READ: DATASET,
    dataset_stages.METHOD: DATASET,
    dataset_stages.FUNCTION: DATASET,
    dataset_stages.CALL: TRANSFORM,
    dataset_stages.TRANSFORM: TRANSFORM,
    dataset_stages.TARGET_TRANSFORM: TRANSFORM,
    dataset_stages.COLLATE: COLLATE,
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
class TimedSamples:
    """The result of one pass over some samples."""

    times: Times
    sizes: FieldSizes = field(default_factory=FieldSizes)
    lots: list[TimedLot] = field(default_factory=list)
    samples: list[Any] = field(default_factory=list)  # of the largest batch
    kept: int = 0  # bytes of batches
    failed: int = 0
    error: str = ""


class Times:
    """Seconds of each stage, sample by sample."""

    def __init__(self, places: dict[str, Line] | None = None) -> None:
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
        added = sum(stage.median for stage in extra)
        total = sum(float(row.sum()) for row in filled.values()) / self.samples + added
        found = [self._stage(key, filled[key], total) for key in self._order if key in filled]
        found += [replace(stage, share=stage.median / total if total > 0 else 0.0) for stage in extra]
        each = np.sum([row[: self.samples] for row in filled.values()], axis=0)
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


def time_stages(readable: ReadableLoader, seconds: float) -> TimedSamples:
    """Samples and batches as the loader would build them, for about this long; inside `reading()`.

    Raises CannotRead if no samples are available.
    """
    if readable.kind not in (MAP, ITERABLE):
        raise CannotRead("single samples are not available because there is no dataset")
    times = Times({stage.name: (stage.file, stage.line) for stage in readable.stages})
    found, began = TimedSamples(times), perf_counter()
    with readable.following(times.left, times.entering) as follower, reading_followed(follower):
        for reads in _reads(readable):
            more = _one_batch(readable, reads, found, began + seconds)
            late = perf_counter() - began >= seconds
            if late or not more or times.samples >= MOST_SAMPLES or found.failed > MOST_FAILED:
                break
    return found


_END = object()


def _reads(readable: ReadableLoader) -> Iterator[list[Callable[[], Any]]]:
    """For each batch, calls that return its samples one by one, or _END when there are no more."""
    if readable.kind == MAP:
        for indices in readable.indices():
            yield [partial(readable.sample, index) for index in indices]
        return
    size = readable.batch_size or (1 if readable.collate is None else BATCH_SIZE)
    yield from repeat([partial(next, readable.samples(), _END)] * size)


def _one_batch(
    readable: ReadableLoader, reads: Sequence[Callable[[], Any]], found: TimedSamples, until: float
) -> bool:
    """Read and collate; returns whether there may be more."""
    samples: list[Any] = []
    sample: Any = None
    for read in reads:
        try:
            sample = read()
        except Exception as error:  # noqa: BLE001 - one of the user's samples fails
            _note(found, error)
            continue
        if sample is _END:
            found.times.forget()
            break
        found.times.close(1)
        found.times.samples += 1
        found.sizes.add(sample)
        samples.append(sample)
        if perf_counter() > until and len(samples) >= FEWEST:
            break
    if samples:
        found.samples = max(samples, found.samples, key=len)
        _collate(readable, samples, found)
    return sample is not _END


def _collate(readable: ReadableLoader, samples: list[Any], found: TimedSamples) -> None:
    shapes = [_shapes(sample) for sample in samples]
    if readable.collate is None:
        found.lots.append(TimedLot(shapes, samples[0]))
        return
    try:
        batch = readable.collated(samples)
    except Exception as error:  # noqa: BLE001 - as above
        _note(found, error)
        return
    found.times.close(len(samples))
    found.kept += tensors_bytes(batch)
    found.lots.append(TimedLot(shapes, batch if found.kept < MOST_KEPT else None))


def _shapes(sample: Any) -> dict[str, tuple[int, ...]]:
    return {name: described(value)[0] for name, value in sample_fields(sample).items()}


def _note(found: TimedSamples, error: Exception) -> None:
    found.times.forget()
    found.failed += 1
    found.error = worker_error_line(error)


# -- the lines that take the time --


def hot_lines(read: Callable[[], Any], seconds: float) -> tuple[HotLine, ...]:
    """Read repeatedly for about this long; the lines by their share, including what they call.

    A line counts when it is the user's innermost line. Empty if another sampler is already running.
    """
    from pyinstrument import Profiler

    profiler = Profiler(interval=INTERVAL, async_mode="disabled")
    try:
        profiler.start()
    except RuntimeError:  # there may be only one in a thread
        return ()
    began = perf_counter()
    try:
        while perf_counter() - began < seconds and read() is not None:
            pass
    finally:
        session = profiler.stop()
    return _lines_of(session.frame_records)


def _lines_of(records: Any) -> tuple[HotLine, ...]:
    """The user's lines by their share of the time."""
    if len(records) < FEWEST_STACKS:
        return ()
    spent: Counter[tuple[str, int]] = Counter()
    for stack, seconds in records:
        inner = stack[_reading_at(stack) + 1 :]  # the program that called us is further out
        place = next((found for frame in reversed(inner) if (found := _place(frame))), None)
        if place is not None:
            spent[place] += seconds
    total = sum(spent.values())  # the rest does not belong to the dataset
    return tuple(
        HotLine(file, line, linecache.getline(file, line).strip()[:120], seconds / total)
        for (file, line), seconds in spent.most_common(MOST_LINES)
        if seconds / total >= LEAST_SHARE
    )


def _reading_at(stack: Any) -> int:
    """Of the frame of `hot_lines`."""
    return next(
        (n for n, frame in enumerate(stack) if frame.startswith(f"hot_lines\x00{__file__}")), len(stack)
    )


def _place(frame: str) -> tuple[str, int] | None:
    """File and line of a user frame, from the sampler's text for it."""
    described, _, attributes = frame.partition("\x01")
    words = described.split("\x00")
    if len(words) != 3 or words[1].startswith("<") or kind_of(words[1]) != USER:
        return None
    line = next((one[1:] for one in attributes.split("\x01") if one[:1] == "l"), words[2])
    return (words[1], int(line)) if line.isdigit() else None
