"""Measures the samples per second of a loader, alone or alternating with training steps.

Always uses a new loader with the program's settings, over a copy of its dataset; the caller is
inside `ReadableLoader.reading()`. The first batches, which include the workers' start, are not counted.
"""

from __future__ import annotations

import contextlib
import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import torch
from torch.utils._pytree import tree_leaves

from clew.labs.loaders.readable_loader import ITERABLE, MAP, ReadableLoader
from clew.labs.loaders.user_errors import worker_error_line
from clew.measure.nested_tensors import tensors_in
from clew.records.errors import CannotRead
from clew.records.loader_speed import Rate

STRETCHES = 8  # into which the time is divided for the spread
WARM_UP = 1 / 3  # of the time, at most
MOST_KEPT = 32 << 20  # bytes of batches that are kept: they may lie in shared memory
MOST_FAILED = 5  # batches that may raise before it gives up
PATIENCE = 60.0  # seconds to wait for a worker that may hang


@dataclass(frozen=True)
class LoaderSetting:
    """What a sweep changes."""

    workers: int
    prefetch: int = 0  # 0 without workers

    @classmethod
    def of(cls, loader: Any) -> LoaderSetting:
        workers = int(getattr(loader, "num_workers", 0) or 0)
        return cls(workers, int(getattr(loader, "prefetch_factor", None) or 2) if workers else 0)


class RateMark(NamedTuple):
    """One batch."""

    samples: int
    waited: float  # seconds, for the loader
    whole: float  # with the work on it
    first: bool = False  # first of its iterator: includes the workers' start


@dataclass
class DeliveryRate:
    """What was delivered, and how long it took."""

    marks: list[RateMark] = field(default_factory=list)
    startup: float = 0.0  # until the first batch
    failed: int = 0
    error: str = ""  # of the last batch that failed
    kept: list[Any] = field(default_factory=list)  # the first batches
    kept_bytes: int = 0
    memory: float | None = None  # of the workers
    together: int = 1  # batches that may arrive at once: one per worker

    @property
    def rate(self) -> Rate | None:
        return rate_of([(mark.samples, mark.whole) for mark in self.marks], self.together)

    @property
    def wait(self) -> float | None:
        """Share of the time that was spent waiting for the loader."""
        return sum(mark.waited for mark in self.marks) / self.seconds if self.seconds > 0 else None

    @property
    def seconds(self) -> float:
        return sum(mark.whole for mark in self.marks)

    @property
    def batch(self) -> float:
        return median(mark.samples for mark in self.marks) if self.marks else 0.0


def rate_of(marks: list[tuple[int, float]], together: int = 1) -> Rate | None:
    """From consecutive (samples, seconds); `together`: how many arrive at once."""
    samples, seconds = sum(m[0] for m in marks), sum(m[1] for m in marks)
    if not samples or seconds <= 0:
        return None
    size = max(together, math.ceil(len(marks) / STRETCHES))
    groups = [marks[n : n + size] for n in range(0, len(marks), size)]
    if len(groups) > 1 and len(groups[-1]) < size:
        short = groups.pop()
        groups[-1] = [*groups[-1], *short]
    sums = [(sum(m[0] for m in group), sum(m[1] for m in group)) for group in groups]
    rates = [count / time for count, time in sums if time > 0]
    return Rate(median(rates), min(rates), max(rates), samples, seconds)


class Endless:
    """A sampler that restarts at its end, and remembers the number of samples in each batch."""

    def __init__(self, sampler: Any) -> None:
        self._sampler = sampler
        self.sizes: deque[int] = deque()

    def __iter__(self) -> Iterator[Any]:
        while True:
            began = False
            for indices in self._sampler:
                began = True
                self.sizes.append(len(indices) if hasattr(indices, "__len__") else 1)
                yield indices
            if not began:
                return

    def __len__(self) -> int:
        return len(self._sampler)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_sampler":
            raise AttributeError(name)
        return getattr(self._sampler, name)


def new_loader(readable: ReadableLoader, setting: LoaderSetting) -> tuple[Any, Endless | None]:
    """The program's settings except workers and prefetching; across epochs, where it has indices."""
    if readable.kind not in (MAP, ITERABLE):
        raise CannotRead("the loader can't be started a second time")
    readable.require_copy()
    loader = readable.bare_loader(**_settings(readable.loader, setting))
    if readable.kind == ITERABLE:
        return loader, None
    name = "batch_sampler" if loader.batch_sampler is not None else "sampler"
    endless = Endless(getattr(loader, name))
    vars(loader)[name] = endless
    return loader, endless if name == "batch_sampler" else None


def _settings(loader: Any, setting: LoaderSetting) -> dict[str, Any]:
    return {
        "num_workers": setting.workers,
        "prefetch_factor": setting.prefetch or None,
        "timeout": max(float(getattr(loader, "timeout", 0) or 0), PATIENCE) if setting.workers else 0,
        "pin_memory": bool(getattr(loader, "pin_memory", False)) and has_accelerator(),
        "_DataLoader__multiprocessing_context": getattr(loader, "multiprocessing_context", None),
        "check_worker_number_rationality": _no_warning,
    }


def _no_warning() -> None:
    """More workers than cores are tried on purpose."""


def has_accelerator() -> bool:
    found = getattr(torch, "accelerator", None)
    return bool(found.is_available()) if found is not None else torch.cuda.is_available()


def deliver(
    readable: ReadableLoader,
    setting: LoaderSetting,
    seconds: float,
    *,
    work: Callable[[], Any] | None = None,
    keep: int = 0,
    at_end: Callable[[Any], float | None] | None = None,
) -> DeliveryRate:
    """Run the loader for about this long; `work` is done with every batch, `at_end` is called at the end.

    Batches that raise are counted, and it continues. Raises what starting the loader raises.
    """
    course = _Course(*new_loader(readable, setting), setting.workers, keep, work)
    try:
        course.begin()
        course.warm_up(seconds)
        course.measure(seconds)
        if at_end is not None:
            course.found.memory = at_end(course.iterator)
    finally:
        course.end()
    return course.found


class _Course:
    """Iterates a loader, again when it has ended, and records what it delivers."""

    def __init__(
        self, loader: Any, endless: Endless | None, workers: int, keep: int, work: Callable[[], Any] | None
    ) -> None:
        self._loader = loader
        self._endless = endless
        self._worker_count = workers
        self._keep = keep
        self._work = work
        self.found = DeliveryRate(together=max(workers, 1))
        self.iterator: Any = None
        self._startup = 0.0  # of all iterators
        self._ended = False
        self._fresh = True  # nothing has come from this iterator yet
        self._empty = 0

    def begin(self) -> None:
        began = perf_counter()
        self.iterator = iter(self._loader)
        self._startup = perf_counter() - began

    def warm_up(self, seconds: float) -> None:
        """Run until every worker has delivered twice, or a third of the time is over. A first batch that
        takes longer than the whole time is measured: a second one would take as long again."""
        found, began, batches = self.found, perf_counter(), 0
        while batches < max(2 * self._worker_count, 1) and not self._ended and found.failed <= MOST_FAILED:
            mark = self._one()
            batches += mark is not None
            if mark is not None and mark.whole > 2 * seconds and not self._worker_count:
                found.marks.append(mark)
            if batches and perf_counter() - began - self._startup > WARM_UP * seconds:
                break
        found.startup = self._startup

    def measure(self, seconds: float) -> None:
        """Run until there is enough to tell the rate."""
        began = perf_counter()
        while not self._ended and not _enough(self.found, perf_counter() - began, seconds):
            mark = self._one()
            if mark is not None and not mark.first:
                self.found.marks.append(mark)

    def _one(self) -> RateMark | None:
        """The next batch, and the work on it; None if there was none this time."""
        found, asked = self.found, perf_counter()
        try:
            batch, samples, first = self._next()
        except StopIteration:
            return None
        except Exception as error:  # noqa: BLE001 - one of the user's batches fails; continue with the others
            found.failed += 1
            found.error = worker_error_line(error)
            return None
        waited = perf_counter() - asked
        if len(found.kept) < self._keep and found.kept_bytes < MOST_KEPT:
            found.kept.append(batch)
            found.kept_bytes += tensors_bytes(batch)
        if self._work is not None:
            self._work()
        return RateMark(samples, waited, perf_counter() - asked, first)

    def _next(self) -> tuple[Any, int, bool]:
        """A batch, its samples, and whether it is the first of its iterator."""
        began, fresh = perf_counter(), self._fresh
        sizes = self._endless.sizes if self._endless is not None else None
        try:
            batch = next(self.iterator)
        except StopIteration:
            self._again()
            raise
        except Exception:
            if sizes:
                sizes.popleft()
            raise
        if fresh:
            self._startup += perf_counter() - began
        self._fresh, self._empty = False, 0
        return batch, (sizes.popleft() if sizes else samples_in(batch)), fresh

    def _again(self) -> None:
        """An iterable dataset has ended: restart it, unless it ends again immediately."""
        self._empty += 1
        if self._empty > 1:
            self._ended = True
            return
        self.end()
        self.iterator, self._fresh = iter(self._loader), True

    def end(self) -> None:
        """Stop all workers."""
        iterator, self.iterator = self.iterator, None
        for name in ("_shutdown_workers", "close"):
            end = getattr(iterator, name, None)
            if callable(end):
                with contextlib.suppress(Exception):
                    end()


def _enough(found: DeliveryRate, spent: float, seconds: float) -> bool:
    if found.failed > MOST_FAILED or spent >= 3 * seconds:
        return True
    return found.seconds >= seconds and (len(found.marks) >= 3 or found.seconds >= 2 * seconds)


def samples_in(batch: Any) -> int:
    """Based on its first array."""
    for leaf in tree_leaves(batch):
        shape = getattr(leaf, "shape", None)
        if shape is not None and len(shape):
            return int(shape[0])
    first = next((part for part in batch.values()), None) if isinstance(batch, dict) else batch
    return len(first) if isinstance(first, (list, tuple)) and first else 1


def tensors_bytes(batch: Any) -> int:
    return sum(tensor.nbytes for tensor in tensors_in(batch))
