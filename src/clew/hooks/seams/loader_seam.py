"""The seams of loaders: batches, how long the program waits for them, and the indices of their samples."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _BaseDataLoaderIter

from clew.hooks.collect_loop import dataset_contents
from clew.hooks.collect_loop.dataset_contents import DatasetWatch
from clew.hooks.entry.user_line import line_of_creation, names_in_callers, user_line
from clew.hooks.seams.probes import Probes

MOST = 4096  # batches in flight; no loader prefetches more
OUTLIVING = 4  # iterators with workers that are remembered for a while after their end


def watch_data(probes: Probes) -> None:
    watcher = probes.watcher
    known: dict[Any, int] = {}
    samples, datasets = watcher.seen_samples, DatasetWatch(watcher.sink)

    def iterated(iterator: Any, loader: DataLoader[Any], *__: Any, **___: Any) -> None:
        file, line = user_line()
        key = (id(loader), file, line)
        index = known.setdefault(key, len(known))
        if index not in samples.names:
            samples.names[index] = names_in_callers(loader)
            fact = dataset_contents.loader_fact(loader, index, file, line)
            made_file, made_line = watcher.models.where_made(loader)
            known_as = tuple(samples.names[index][:8])
            fact = replace(fact, names=known_as, made_file=made_file, made_line=made_line)
            fact = replace(fact, **datasets.describe(loader))
            fact.write(watcher.sink, watcher.clock.step)
        samples.loaders[id(iterator)] = index
        samples.iterated(index, loader)
        datasets.epoch_began(loader, index, watcher.clock.step)

    machine = probes.machine

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(iterator: Any) -> Any:
            if threading.get_ident() != machine.thread:
                return original(iterator)
            began = perf_counter()
            result = original(iterator)
            seconds = perf_counter() - began
            samples.source = id(iterator)
            recorder = machine.recorder
            try:
                recorder.batch_delivered(seconds, result)
            except Exception as error:  # noqa: BLE001 - nothing of ours may reach the user
                machine.failed(recorder, error).batch_delivered(seconds, result)
            return result

        return wrapper

    def made(_: Any, loader: DataLoader[Any], *__: Any, **___: Any) -> None:
        watcher.models.note_made(loader, *line_of_creation(loader))

    probes.around(DataLoader, "__init__", probes.probe("loader-made", made))
    probes.around(DataLoader, "__iter__", probes.probe("loader", iterated))
    probes.patches.wrap(_BaseDataLoaderIter, "__next__", wrap)


@dataclass
class Crew:
    """The workers of an iterator.

    It outlives the iterator, which is gone after a worker dies: a signal raises the error anywhere in the
    program, and the loop that kept the iterator is left.
    """

    pids: tuple[int, ...]
    dataset: int  # ids, to identify the loader
    sampler: int
    ahead: int  # most batches in flight
    drawn: dict[int, Any] = field(repr=False)

    def waiting(self) -> list[int]:
        """The samples of the batches that may be in flight."""
        return [index for number in sorted(self.drawn)[-self.ahead :] for index in self.of(number)]

    def of(self, number: int) -> list[int]:
        return _plain(self.drawn[number]) or []


class Indices:
    """Sample indices of recent batches, by iterator and batch number, recorded when the iterator draws them.

    A worker's exception names no sample, and a batch does not know its own indices. The iterator knew them
    when it asked its sampler. One short entry is kept per batch in flight.
    """

    def __init__(self) -> None:
        self._drawn: weakref.WeakKeyDictionary[Any, dict[int, Any]] = weakref.WeakKeyDictionary()
        self._crews: deque[Crew] = deque(maxlen=OUTLIVING)

    def note(self, iterator: Any, index: Any) -> None:
        """Record that an iterator drew the indices of its next batch."""
        drawn = self._drawn.get(iterator)
        if drawn is None:
            drawn = self._drawn[iterator] = {}
            self._note_workers(iterator, drawn)
        drawn[self._number(iterator)] = index
        if len(drawn) > 64:
            waiting = getattr(iterator, "_rcvd_idx", self._number(iterator)) - 8
            for number in [n for n in drawn if n < waiting or len(drawn) > MOST]:
                del drawn[number]

    @staticmethod
    def _number(iterator: Any) -> int:
        """Number of the batch that is being drawn."""
        number = getattr(iterator, "_send_idx", None)
        return int(iterator._num_yielded if number is None else number)

    def of(self, iterator: Any, number: int) -> list[int] | None:
        """The indices of this batch."""
        return _plain(self._drawn.get(iterator, {}).get(number))

    def _note_workers(self, iterator: Any, drawn: dict[int, Any]) -> None:
        workers = getattr(iterator, "_workers", ())
        if workers:
            pids = tuple(worker.pid for worker in workers)
            ahead = len(pids) * int(getattr(iterator, "_prefetch_factor", 2) or 2)
            self._crews.append(Crew(pids, id(iterator._dataset), id(iterator._index_sampler), ahead, drawn))

    def crew_of(self, pids: set[int]) -> Crew | None:
        """The workers of the iterator that one of these processes worked for."""
        return next((crew for crew in reversed(self._crews) if pids & set(crew.pids)), None)

    def last(self, iterator_id: int) -> list[int] | None:
        """The indices of the batch that this iterator delivered last."""
        for iterator, drawn in list(self._drawn.items()):
            if id(iterator) == iterator_id:
                number = getattr(iterator, "_rcvd_idx", None)
                if number is None:
                    return _plain(drawn.get(iterator._num_yielded - 1))
                return _plain(drawn.get(number - 1)) if iterator._in_order else None
        return None


def _plain(drawn: Any) -> list[int] | None:
    try:
        given = drawn if isinstance(drawn, (list, tuple)) else drawn.tolist()
        return [int(i) for i in given]
    except (AttributeError, TypeError, ValueError):
        return [drawn] if isinstance(drawn, int) else None


def watch_indices(probes: Probes, indices: Indices) -> None:
    """Install the wrapper; if it fails, only the indices are lost."""
    noted = probes.guard.inner("indices", indices.note)

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(iterator: Any) -> Any:
            index = original(iterator)
            noted(iterator, index)
            return index

        return wrapper

    probes.patches.wrap(_BaseDataLoaderIter, "_next_index", wrap)
