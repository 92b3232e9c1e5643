"""`--batch-sizes`: samples per second and memory at several batch sizes, on a snapshot.

Batches of other sizes are cut and joined from the program's own. Sizes are gone through once from
small to large, to see what fits, and then timed in turn, so that what disturbs the machine disturbs
all of them alike.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from clew.hooks.steps.pause import distributed
from clew.labs.profiler.attempts.paired_rounds import LEAST_ROUNDS, spread, steps_of_half
from clew.labs.profiler.attempts.step_changes import as_it_is
from clew.labs.profiler.attempts.step_memory import StepPeak, available, memory_of_step
from clew.labs.profiler.attempts.trainee import SLOW, Trainee, trainee
from clew.labs.snapshot.step_batch import StepBatch, joined
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge
from clew.records.facts.document_facts import BatchSizesFact
from clew.records.tried_changes import BatchSizes, SizeRow

TIME_LIMIT = 60.0  # seconds in all
ROUNDS = 9
FEW_ROUNDS = 3  # that must do where a step takes seconds
GAIN = 0.10  # more samples per second that twice the batch must give to be worth it
MEMORY = 0.8  # of what is available that a step may take
NO_SAMPLES = "it is unknown which dimension of a batch holds the samples"
SEVERAL = "training is spread over several processes"
NO_TIME = "no time left"

Record = Callable[[str, dict[str, Any]], None]
Progress = Callable[[int, int, str, float], None]


def sweep(
    subject: Subject,
    sizes: Sequence[int],
    record: Record,
    *,
    time_limit: float = TIME_LIMIT,
    progress: Progress | None = None,
    now: Callable[[], float] = perf_counter,
) -> BatchSizes:
    """Train a little with batches of each size and of the program's own; the answer is recorded, too."""
    try:
        found = _swept(subject, sizes, now() + time_limit, progress, now)
    except CannotJudge as error:
        found = BatchSizes(reason=error.reason, hint=error.hint)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the user's code may fail in any way
        found = BatchSizes(reason=f"running your step again failed: {_said(error)}")
    record(BatchSizesFact.fact_kind, BatchSizesFact(found).to_json())
    return found


def _swept(
    subject: Subject,
    sizes: Sequence[int],
    until: float,
    progress: Progress | None,
    now: Callable[[], float],
) -> BatchSizes:
    if distributed():
        raise CannotJudge(SEVERAL)
    with trainee(subject) as snapshot:
        snapshot.now = now
        samples = _samples(subject)
        run = _Sweep(snapshot, samples, until, now, progress)
        current = subject.batches[0].size
        rows = run.rows(sorted({*sizes, current}))
    knee, why = find_knee(rows)
    return BatchSizes(tuple(rows), knee, why, current)


def _samples(subject: Subject) -> StepBatch:
    """All samples that the program has trained with so far, in one batch."""
    first = subject.batch()
    if not first.size or all(dim is None for dim in first.dims):
        raise CannotJudge(NO_SAMPLES)
    return joined([b for b in subject.batches if _fits(b, first)])


def _fits(batch: StepBatch, first: StepBatch) -> bool:
    """Whether they can be joined: alike but for the number of samples."""
    pairs = zip(batch.tensors(), first.tensors(), first.dims, strict=True)
    return all(
        dim is None or (*a.shape[:dim], *a.shape[dim + 1 :]) == (*b.shape[:dim], *b.shape[dim + 1 :])
        for a, b, dim in pairs
    )


@dataclass
class _Size:
    """One size at work."""

    size: int
    batch: StepBatch | None = None  # once it is known that it can be trained with
    seconds: float = 0.0  # of one step, roughly
    taken: list[float] = field(default_factory=list)  # seconds per step, by round
    held: StepPeak = field(default_factory=StepPeak)
    reason: str = ""

    def row(self) -> SizeRow:
        size, reason = self.size, self.reason
        if not reason and len(self.taken) < FEW_ROUNDS:
            reason = NO_TIME
        if reason:
            return SizeRow(size, peak=self.held.tensors, process=self.held.process, reason=reason)
        rates = [size / seconds for seconds in self.taken]
        return SizeRow(
            size=size,
            seconds=statistics.median(self.taken),
            throughput=statistics.median(rates),
            spread=spread(rates),
            rounds=len(rates),
            peak=self.held.tensors,
            process=self.held.process,
        )


@dataclass
class _Sweep:
    snapshot: Trainee
    samples: StepBatch
    until: float
    now: Callable[[], float]
    progress: Progress | None

    def rows(self, sizes: Sequence[int]) -> list[SizeRow]:
        tried: list[_Size] = []
        for number, size in enumerate(sizes):
            self._tell(number, 2 * len(sizes), size)
            tried.append(_Size(size))
            tried[-1].reason = self._does_not_fit(tried) or self._look(tried[-1])
        self._time([one for one in tried if one.batch is not None])
        return [one.row() for one in tried]

    def _does_not_fit(self, tried: Sequence[_Size]) -> str:
        """By what the smaller ones took, in memory and in time."""
        size = tried[-1].size
        known = [(t.size, t.held.activations) for t in tried[:-1] if t.held.activations]
        needed = foreseen(known, size)
        if needed is not None and needed > MEMORY * available():
            return f"it would need about {_gigabytes(needed)}, and {_gigabytes(available())} are free"
        before = [t for t in tried[:-1] if t.seconds]
        step = before[-1].seconds * size / before[-1].size if before else 0.0
        return NO_TIME if (2 + FEW_ROUNDS) * step > self._left else ""

    def _look(self, one: _Size) -> str:
        """A step to warm up, one for the clock, one to look at its memory."""
        way = as_it_is(self.snapshot.subject)
        try:
            batch = sized(self.samples, one.size)
            self.snapshot.half(way, [batch], 1, warm=False)
            one.seconds = self.snapshot.half(way, [batch], 1, warm=False)
            one.held = memory_of_step(self.snapshot, way, batch)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - of one sample BatchNorm makes nothing
            return f"the step fails: {_said(error)}"
        one.batch = batch
        return ""

    def _time(self, fitting: Sequence[_Size]) -> None:
        way = as_it_is(self.snapshot.subject)
        for turn in range(ROUNDS):
            for number, one in enumerate(fitting if turn % 2 == 0 else reversed(fitting)):
                done = (turn + number / len(fitting)) / ROUNDS
                self._tell(len(fitting), 2 * len(fitting), one.size, done * len(fitting))
                assert one.batch is not None
                steps = steps_of_half(one.seconds)
                warm = one.seconds < SLOW
                if turn >= FEW_ROUNDS and (steps + warm) * one.seconds > self._left:
                    continue
                one.taken.append(self.snapshot.half(way, [one.batch], steps, warm=warm))
            if self._left <= 0 and turn + 1 >= FEW_ROUNDS:
                return

    @property
    def _left(self) -> float:
        return self.until - self.now()

    def _tell(self, number: int, count: int, size: int, done: float = 0.0) -> None:
        if self.progress is not None:
            self.progress(number, count, f"batches of {size}", done)


def sized(samples: StepBatch, size: int) -> StepBatch:
    """So many samples, the same ones again where there are not enough."""
    return samples.rows([n % samples.size for n in range(size)])


def foreseen(known: Sequence[tuple[int, int]], size: int) -> float | None:
    """Bytes that batches of this size need, on the line through the two largest known ones."""
    if not known:
        return None
    if len(known) == 1:
        return known[-1][1] * size / known[-1][0]
    (a, needs_a), (b, needs_b) = known[-2:]
    slope = max((needs_b - needs_a) / (b - a), 0.0)
    return needs_b + slope * (size - b)


# ---- the knee ------------------------------------------------------------------------------


def find_knee(rows: Sequence[SizeRow]) -> tuple[int | None, str]:
    """The smallest size from which no larger one gives much more, and why it is that one."""
    known = [row for row in rows if row.measured]
    if len(known) < 2:
        return None, "fewer than two sizes could be measured"
    for number, row in enumerate(known[:-1]):
        gains = [gain_of_doubling(row, other) for other in known[number + 1 :]]
        if all(gain < GAIN for gain in gains):
            best = max(known[number + 1 :], key=lambda r: r.throughput)
            more = best.throughput / row.throughput - 1.0
            return row.size, _beyond(more, best.size)
    last = known[-1]
    return None, f"the largest one measured ({last.size}) is still faster: try larger ones"


def _beyond(more: float, size: int) -> str:
    if more <= 0:
        return "larger batches are not faster"
    return f"larger batches give at most {more:.0%} more samples per second (batches of {size})"


def gain_of_doubling(one: SizeRow, other: SizeRow) -> float:
    """What each doubling from one size to a larger one adds in samples per second, beyond noise."""
    if not one.throughput or other.size <= one.size:
        return 0.0
    noise = _noise(one) + _noise(other)
    total = other.throughput / one.throughput
    sure = max(total * (1.0 - noise), 1e-9)
    doublings = math.log2(other.size / one.size)
    return float(sure ** (1.0 / doublings) - 1.0) if total > 1.0 else 0.0


def _noise(row: SizeRow) -> float:
    """Relative error of the median over the rounds."""
    rounds = max(row.rounds, LEAST_ROUNDS)
    return row.spread / row.throughput / math.sqrt(rounds) * 2.0


def _gigabytes(number: float) -> str:
    return f"{number / 2**30:.1f} GiB" if number >= 2**29 else f"{number / 2**20:.0f} MiB"


def _said(error: BaseException) -> str:
    first = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return (f"{type(error).__name__}: {first}" if first else type(error).__name__)[:200]
