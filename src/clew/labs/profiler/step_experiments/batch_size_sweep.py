"""`--batch-sizes`: samples per second and memory at several batch sizes, on a snapshot.

Batches of other sizes are cut and joined from the program's own. All sizes are run once from
small to large, to see what fits, and then timed in alternation, so that noise on the machine affects
all of them alike.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from torch import Tensor

from clew.labs.profiler.step_experiments.step_changes import own_variant
from clew.labs.profiler.step_experiments.step_runner import (
    LEAST_ROUNDS,
    SLOW,
    TIME_LIMIT,
    Progress,
    Record,
    StepRunner,
    StepVariant,
    error_line,
    spread,
    step_runner,
    steps_of_half,
)
from clew.labs.profiler.torch_trace.kineto_window import activities
from clew.labs.profiler.torch_trace.torch_events import profiler_is_on
from clew.labs.snapshot.step_batch import StepBatch, joined
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge
from clew.records.facts.document_facts import BatchSizesFact
from clew.records.tried_changes import BatchSizes, SizeRow

ROUNDS = 9
FEW_ROUNDS = 3  # rounds that must suffice if a step takes seconds
GAIN = 0.10  # gain in samples per second that makes twice the batch worthwhile
MEMORY = 0.8  # share of the available memory that a step may take
NO_SAMPLES = "it is unknown which dimension of a batch holds the samples"
NO_TIME = "time limit reached"
LIMIT, USED = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")


def sweep(
    subject: Subject,
    sizes: Sequence[int],
    record: Record,
    *,
    time_limit: float = TIME_LIMIT,
    progress: Progress | None = None,
    now: Callable[[], float] = perf_counter,
) -> BatchSizes:
    """Train briefly with batches of each size and of the program's own; the result is also recorded."""
    try:
        found = _swept(subject, sizes, now() + time_limit, progress, now)
    except CannotJudge as error:
        found = BatchSizes(reason=error.reason, hint=error.hint)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the user's code may fail in any way
        found = BatchSizes(reason=f"running your step again failed: {error_line(error)}")
    record(BatchSizesFact(found))
    return found


def _swept(
    subject: Subject,
    sizes: Sequence[int],
    until: float,
    progress: Progress | None,
    now: Callable[[], float],
) -> BatchSizes:
    with step_runner(subject, now) as runner:
        samples = _samples(subject)
        run = _Sweep(runner, samples, until, now, progress)
        current = subject.batches[0].size
        rows = run.rows(sorted({*sizes, current}))
    knee, why = find_knee(rows)
    return BatchSizes(tuple(rows), knee, why, current)


def _samples(subject: Subject) -> StepBatch:
    """All samples that the program has trained on so far, in one batch."""
    first = subject.batch()
    if not first.size or all(dim is None for dim in first.dims):
        raise CannotJudge(NO_SAMPLES)
    return joined([b for b in subject.batches if _fits(b, first)])


def _fits(batch: StepBatch, first: StepBatch) -> bool:
    """Whether they can be joined: equal except for the number of samples."""
    pairs = zip(batch.tensors(), first.tensors(), first.dims, strict=True)
    return all(
        dim is None or (*a.shape[:dim], *a.shape[dim + 1 :]) == (*b.shape[:dim], *b.shape[dim + 1 :])
        for a, b, dim in pairs
    )


@dataclass(frozen=True)
class StepPeak:
    """Bytes at the peak of a step."""

    tensors: int = 0  # all of them
    activations: int = 0  # of them, what scales with the batch and is freed after the step
    process: int = 0


@dataclass
class _Size:
    """One batch size under test."""

    size: int
    batch: StepBatch | None = None  # set once training with it has worked
    seconds: float = 0.0  # of one step, roughly
    taken: list[float] = field(default_factory=list)  # seconds per step, by round
    memory: StepPeak = field(default_factory=StepPeak)
    reason: str = ""

    def row(self) -> SizeRow:
        size, reason = self.size, self.reason
        if not reason and len(self.taken) < FEW_ROUNDS:
            reason = NO_TIME
        if reason:
            return SizeRow(size, peak=self.memory.tensors, process=self.memory.process, reason=reason)
        rates = [size / seconds for seconds in self.taken]
        return SizeRow(
            size=size,
            seconds=statistics.median(self.taken),
            throughput=statistics.median(rates),
            spread=spread(rates),
            rounds=len(rates),
            peak=self.memory.tensors,
            process=self.memory.process,
        )


@dataclass
class _Sweep:
    runner: StepRunner
    samples: StepBatch
    until: float
    now: Callable[[], float]
    progress: Progress | None

    def rows(self, sizes: Sequence[int]) -> list[SizeRow]:
        tried: list[_Size] = []
        for number, size in enumerate(sizes):
            self._report(number, 2 * len(sizes), size)
            tried.append(_Size(size))
            tried[-1].reason = self._does_not_fit(tried) or self._measure(tried[-1])
        self._time([one for one in tried if one.batch is not None])
        return [one.row() for one in tried]

    def _does_not_fit(self, tried: Sequence[_Size]) -> str:
        """Predicted from the memory and time of the smaller sizes."""
        size = tried[-1].size
        known = [(t.size, t.memory.activations) for t in tried[:-1] if t.memory.activations]
        needed = predict_bytes(known, size)
        if needed is not None and needed > MEMORY * available():
            return f"it would need about {_memory_text(needed)}, but only {_memory_text(available())} is free"
        before = [t for t in tried[:-1] if t.seconds]
        step = before[-1].seconds * size / before[-1].size if before else 0.0
        return NO_TIME if (2 + FEW_ROUNDS) * step > self._left else ""

    def _measure(self, one: _Size) -> str:
        """One step to warm up, one to time, one to measure its memory."""
        variant = own_variant(self.runner.subject)
        try:
            batch = batch_of_size(self.samples, one.size)
            self.runner.half(variant, [batch], 1, warm=False)
            one.seconds = self.runner.half(variant, [batch], 1, warm=False)
            one.memory = memory_of_step(self.runner, variant, batch)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - BatchNorm rejects a single sample
            return f"the step fails: {error_line(error)}"
        one.batch = batch
        return ""

    def _time(self, fitting: Sequence[_Size]) -> None:
        variant = own_variant(self.runner.subject)
        for turn in range(ROUNDS):
            for number, one in enumerate(fitting if turn % 2 == 0 else reversed(fitting)):
                done = (turn + number / len(fitting)) / ROUNDS
                self._report(len(fitting), 2 * len(fitting), one.size, done * len(fitting))
                assert one.batch is not None
                steps = steps_of_half(one.seconds)
                warm = one.seconds < SLOW
                if turn >= FEW_ROUNDS and (steps + warm) * one.seconds > self._left:
                    continue
                one.taken.append(self.runner.half(variant, [one.batch], steps, warm=warm))
            if self._left <= 0 and turn + 1 >= FEW_ROUNDS:
                return

    @property
    def _left(self) -> float:
        return self.until - self.now()

    def _report(self, number: int, count: int, size: int, done: float = 0.0) -> None:
        if self.progress is not None:
            self.progress(number, count, f"batches of {size}", done)


def batch_of_size(samples: StepBatch, size: int) -> StepBatch:
    """This many samples, repeated if there are not enough."""
    return samples.rows([n % samples.size for n in range(size)])


def predict_bytes(known: Sequence[tuple[int, int]], size: int) -> float | None:
    """Bytes that batches of this size need, extrapolated from the two largest known ones."""
    if not known:
        return None
    if len(known) == 1:
        return known[-1][1] * size / known[-1][0]
    (a, needs_a), (b, needs_b) = known[-2:]
    slope = max((needs_b - needs_a) / (b - a), 0.0)
    return needs_b + slope * (size - b)


# -- the knee --


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
    return None, f"the largest one measured ({last.size}) is still faster; try larger ones"


def _beyond(more: float, size: int) -> str:
    if more <= 0:
        return "larger batches are not faster"
    return f"larger batches give at most {more:.0%} more samples per second (batches of {size})"


def gain_of_doubling(one: SizeRow, other: SizeRow) -> float:
    """The gain in samples per second of each doubling from one size to a larger one, beyond noise."""
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


def _memory_text(number: float) -> str:
    return f"{number / 2**30:.1f} GiB" if number >= 2**29 else f"{number / 2**20:.0f} MiB"


# -- peak memory of one step: of its tensors, and of the process --


def memory_of_step(runner: StepRunner, variant: StepVariant, batch: StepBatch) -> StepPeak:
    """One step to create gradients and optimizer state, then one that is measured."""
    optimizers = runner.start(variant)
    runner.step(batch, variant, optimizers)
    settled = _bytes([*_kept(runner, optimizers), *batch.tensors()])
    if any(t.is_cuda for t in runner.subject.parameters()):
        return _on_device(runner, variant, batch, optimizers)
    if profiler_is_on():  # the program's own: its numbers are not to be disturbed
        return StepPeak(settled, 0, _process())
    process = _after_forward(runner, batch)
    with torch.profiler.profile(activities=activities(), profile_memory=True) as profiler:
        runner.step(batch, variant, optimizers)
    above = _peak_above_start(profiler)
    return StepPeak(settled + above, above, process)


def _on_device(runner: StepRunner, variant: StepVariant, batch: StepBatch, optimizers: Any) -> StepPeak:
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    runner.step(batch, variant, optimizers)
    peak = torch.cuda.max_memory_allocated()
    return StepPeak(peak, peak - before, _process())


def _after_forward(runner: StepRunner, batch: StepBatch) -> int:
    """Of the process while the activations wait for the backward."""
    loss = runner.snapshot.loss(batch)
    resident = _process()
    loss.backward()  # not just released: a graph of many nodes is freed as in training
    return resident


def _peak_above_start(profiler: Any) -> int:
    """The largest allocation above the starting level."""
    results = profiler.profiler.kineto_results
    found = [(e.start_ns(), e.nbytes()) for e in results.events() if e.name() == "[memory]"]
    now = most = 0
    for _, number in sorted(found, key=lambda pair: pair[0]):
        now += number
        most = max(most, now)
    return most


def _kept(runner: StepRunner, optimizers: Iterable[Any]) -> Iterable[Tensor]:
    for module in runner.subject.models.values():
        yield from module.parameters()
        yield from module.buffers()
    for parameter in runner.subject.parameters():
        yield parameter
        if parameter.grad is not None:
            yield parameter.grad
    for optimizer in optimizers:
        for state in optimizer.state.values():
            yield from (value for value in state.values() if isinstance(value, Tensor))


def _bytes(tensors: Iterable[Tensor]) -> int:
    storages = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors}
    return sum(storages.values())


def _process() -> int:
    import psutil

    return int(psutil.Process().memory_info().rss)


def available() -> float:
    """Bytes that a step may still use, given the machine and the container's limit."""
    import psutil

    free = float(psutil.virtual_memory().available)
    try:
        return min(free, float(LIMIT.read_text()) - float(USED.read_text()))
    except (OSError, ValueError):  # no such limit
        return free
