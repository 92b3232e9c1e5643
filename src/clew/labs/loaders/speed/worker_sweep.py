"""Tries settings for workers and prefetching: from coarse to fine, several rounds of each.

If there is a training step, loader and step alternate, as in training: workers take cores from the
model, so a loader that is faster alone may be slower in training.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter
from types import CodeType
from typing import Any

import psutil
from torch.utils.data import IterableDataset

from clew.hooks.entry.user_line import USER, kind_of
from clew.labs.loaders.readable_loader import ITERABLE, ReadableLoader
from clew.labs.loaders.speed.loader_rate import DeliveryRate, LoaderSetting, deliver
from clew.labs.loaders.user_errors import worker_error_line
from clew.records.errors import CannotRead
from clew.records.loader_speed import Rate, Sweep, SweepRow

DEPTH = 3  # of functions that call each other
SHARDING = "get_worker_info"
SPLIT_HINT = (
    "the dataset does not split itself among workers (torch.utils.data.get_worker_info): "
    "with more than one worker, every sample would be read more than once"
)

PREFETCH = (2, 4, 8)
ROUNDS = 3
PAIRS = 3  # pairs of the program's setting and the best one, at the end
SHORTEST = 0.3  # seconds of a round, without the workers' start
NEAR = 0.07  # of the fastest: counts as equally fast
MOST_MEMORY = 0.5  # of the free memory that workers may take
MOST_NOISE = 0.15  # of the rate that noise may explain


@dataclass
class SettingRates:
    """One setting over the rounds."""

    setting: LoaderSetting
    rates: list[Rate] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)  # shares of the time, for the loader
    memory: float | None = None
    error: str = ""

    @property
    def median(self) -> float:
        return median(rate.median for rate in self.rates) if self.rates else 0.0

    @property
    def noise(self) -> float:
        """Relative spread between rounds; for a single round, within it."""
        values = [rate.median for rate in self.rates]
        if len(values) == 1:
            return self.rates[0].spread / 2
        return (max(values) - min(values)) / 2 / self.median if self.median else 0.0

    def row(self) -> SweepRow:
        rate = None
        if self.rates:
            low, high = (pick(r.median for r in self.rates) for pick in (min, max))
            samples = sum(r.samples for r in self.rates)
            rate = Rate(self.median, low, high, samples, sum(r.seconds for r in self.rates))
        return SweepRow(self.setting.workers, self.setting.prefetch, rate, self.memory, self.error)


Progress = Callable[[str], None]


def sweep(
    readable: ReadableLoader,
    seconds: float,
    *,
    work: Callable[[], Any] | None = None,
    progress: Progress | None = None,
) -> Sweep:
    """Try settings for about this long; inside `ReadableLoader.reading()`."""
    began, now, cores = perf_counter(), LoaderSetting.of(readable.loader), usable_cores()
    most, notes = _most_workers(readable, cores)  # that are always tried
    search = _Search(readable, began + seconds, work, progress)
    measured = search.measured
    search.rounds(_coarse(now, most), share=0.4)
    fastest = max(measured.values(), key=lambda t: t.median, default=None)
    if fastest is not None and fastest.median:
        search.rounds(_fine(fastest.setting, most, measured), share=0.5)
    best, saved = search.confirmed(now, select_setting(measured.values()))
    return Sweep(
        rows=tuple(one.row() for one in sorted(measured.values(), key=_order)),
        workers=now.workers,
        prefetch=now.prefetch,
        best_workers=best.setting.workers if best is not None else None,
        best_prefetch=best.setting.prefetch if best is not None else 0,
        with_step=work is not None,
        gain=saved if work is not None else None,
        cores=cores,
        seconds=perf_counter() - began,
        notes=notes,
    )


def usable_cores() -> int:
    """The cores this process may run on."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


def _most_workers(readable: ReadableLoader, cores: int) -> tuple[int, tuple[str, ...]]:
    if readable.kind == ITERABLE and not splits_itself(readable.dataset, readable.loader):
        return 1, (SPLIT_HINT,)
    return cores, ()


def _coarse(now: LoaderSetting, most: int) -> list[LoaderSetting]:
    """The program's own setting first, then no workers, and doublings up to the number of cores."""
    counts = [0, 1]
    while counts[-1] * 2 < most:
        counts.append(counts[-1] * 2)
    tried = [now, *(LoaderSetting(n, PREFETCH[0] if n else 0) for n in (*counts, most))]
    return list(dict.fromkeys(tried))


def _fine(fastest: LoaderSetting, most: int, known: Iterable[LoaderSetting]) -> list[LoaderSetting]:
    """Between the doublings, above the number of cores if the most were too few, and more prefetching."""
    near = {(fastest.workers * 3) // 4, (fastest.workers * 3) // 2}
    near |= {2 * fastest.workers} if fastest.workers == most else set()
    limit = 2 * most if most > 1 else most
    counts = sorted(n for n in near if 0 < n <= limit and fastest.workers)
    tried = [LoaderSetting(n, PREFETCH[0]) for n in counts]
    tried += [LoaderSetting(fastest.workers, ahead) for ahead in PREFETCH if fastest.workers]
    return [one for one in tried if one not in set(known)]


class _Search:
    """Measures settings within a time limit."""

    def __init__(
        self,
        readable: ReadableLoader,
        until: float,
        work: Callable[[], Any] | None,
        progress: Progress | None,
    ) -> None:
        self._readable = readable
        self.measured: dict[LoaderSetting, SettingRates] = {}
        self._until = until
        self._work = work
        self._progress = progress

    def rounds(self, settings: list[LoaderSetting], share: float) -> None:
        """Every setting in every round, so that a busy moment of the machine does not affect only one."""
        left = (self._until - perf_counter()) * share
        until = perf_counter() + left
        for number in range(ROUNDS):
            for setting in settings:
                if perf_counter() >= until and self._compared(settings, number):
                    return
                seconds = max(left / (ROUNDS * len(settings)) / 2, SHORTEST)
                self._measure(setting, seconds)

    def confirmed(
        self, now: LoaderSetting, best: SettingRates | None
    ) -> tuple[SettingRates | None, float | None]:
        """The program's setting and the best one in turn again, as machines are busy at times: the best
        one, or the program's own if the other was not faster every time; and the share of time saved."""
        own = self.measured.get(now)
        if best is None or own is None or not own.rates or best is own:
            return best, None if own is None or not own.rates or best is None else 0.0
        seconds = max((self._until - perf_counter()) / (2 * PAIRS) / 2, SHORTEST)
        pairs = [self._pair(own, best, seconds, turned=bool(n % 2)) for n in range(PAIRS)]
        saved = gain_of([pair for pair in pairs if pair is not None])
        if best.setting.workers > now.workers and own.waits:
            saved = min(saved, median(own.waits))  # more workers remove waiting, and nothing else
        return (own if not saved and best.setting.workers > now.workers else best), saved

    def _pair(
        self, own: SettingRates, best: SettingRates, seconds: float, *, turned: bool
    ) -> tuple[float, float] | None:
        """Rates of both, measured one right after the other."""
        for one in (best, own) if turned else (own, best):
            self._measure(one.setting, seconds)
        return None if own.error or best.error else (own.rates[-1].median, best.rates[-1].median)

    def _compared(self, settings: list[LoaderSetting], number: int) -> bool:
        """At least one round of the first settings, however long it takes."""
        return number > 0 or len(self.measured) >= 3 or len(settings) == len(self.measured)

    def _measure(self, setting: LoaderSetting, seconds: float) -> None:
        one = self.measured.setdefault(setting, SettingRates(setting))
        if one.error or not self._affordable(setting):
            one.error = one.error or "skipped: its workers might not fit in memory"
            return
        if self._progress is not None:
            self._progress(f"num_workers={setting.workers}, prefetch_factor={setting.prefetch}")
        try:
            found = deliver(self._readable, setting, seconds, work=self._work, at_end=memory_of)
        except CannotRead:
            raise
        except Exception as error:  # noqa: BLE001 - a setting that the program can't run with is an answer
            one.error = worker_error_line(error)
            return
        self._note(one, found)

    def _affordable(self, setting: LoaderSetting) -> bool:
        """Based on the memory of a worker in the settings so far."""
        known = [
            t.memory / t.setting.workers for t in self.measured.values() if t.memory and t.setting.workers
        ]
        needed = max(known, default=0.0) * setting.workers
        return needed <= MOST_MEMORY * float(psutil.virtual_memory().available)

    def _note(self, one: SettingRates, found: DeliveryRate) -> None:
        rate = found.rate
        if rate is None:
            one.error = found.error or "no batch was loaded"
            return
        one.rates.append(rate)
        one.waits.append(found.wait or 0.0)
        one.memory = found.memory if one.memory is None else max(one.memory, found.memory or 0.0)


def memory_of(iterator: Any) -> float | None:
    """Bytes of all workers together; shared memory is divided among them."""
    total = 0.0
    workers = getattr(iterator, "_workers", None) or []
    for worker in workers:
        with suppress(psutil.Error):
            found = psutil.Process(worker.pid).memory_full_info()
            total += float(getattr(found, "pss", 0) or found.uss)
    return total


def select_setting(measured: Iterable[SettingRates]) -> SettingRates | None:
    """The simplest of those that are as fast as the fastest: fewest workers, then least prefetching."""
    tried = [one for one in measured if one.rates]
    if len(tried) < 2:
        return None
    fastest = max(tried, key=lambda one: one.median)
    for one in sorted(tried, key=_order):
        noise = min(max(fastest.noise, one.noise), MOST_NOISE)
        if one.median >= fastest.median * (1 - max(NEAR, noise)):
            return one
    return fastest


def _order(one: SettingRates) -> tuple[int, int]:
    return one.setting.workers, one.setting.prefetch


def gain_of(pairs: list[tuple[float, float]]) -> float:
    """Share of the time that the second of each pair saves; zero if it was not faster every time."""
    if not pairs or any(other <= own for own, other in pairs):
        return 0.0
    return 1 - median(own / other for own, other in pairs)


def splits_itself(dataset: Any, loader: Any = None) -> bool:
    """Whether an iterable dataset asks which worker it is in, or may learn it from the program's own
    `worker_init_fn`. Code that is not the user's is trusted."""
    entry = getattr(type(dataset), "__iter__", None)
    code = getattr(entry, "__code__", None)
    if code is None or kind_of(code.co_filename) != USER or getattr(loader, "worker_init_fn", None):
        return True
    inner = [
        value for value in getattr(dataset, "__dict__", {}).values() if isinstance(value, IterableDataset)
    ]
    return _asks(entry, type(dataset), DEPTH) or any(splits_itself(value) for value in inner)


def _asks(function: Any, owner: type, depth: int) -> bool:
    """Whether one of the user's functions, or one it calls by name, asks for the worker."""
    code = getattr(function, "__code__", None)
    if code is None or depth < 0 or kind_of(code.co_filename) != USER:
        return False
    names = {name for part in _codes(code) for name in part.co_names}
    called = [function.__globals__.get(name) or getattr(owner, name, None) for name in names]
    return SHARDING in names or any(_asks(one, owner, depth - 1) for one in called if one is not function)


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Including those of nested functions."""
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _codes(inner)
