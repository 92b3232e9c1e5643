"""How a program loads its data during a profile: the batches of each loader, and what its datasets store.

Each batch has a duration, a size and dtypes. Datasets are inspected from outside: no sample is read and
none of their code runs. They may store data as Python lists, or as arrays wider than the network needs.
"""

from __future__ import annotations

import math
import pickle
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from time import perf_counter, thread_time
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter, _SingleProcessDataLoaderIter

from clew.hooks.collect_loop.dataset_contents import innermost
from clew.hooks.entry.guard import Guard
from clew.hooks.entry.patches import Patches
from clew.hooks.steps.watcher import Watcher
from clew.measure.nested_tensors import instances_in
from clew.records.facts.profile_facts import BatchPart, KeptDataFact, LoadingFact

PROBE = "observing"
MOST_PARTS = 16  # tensors of a batch that are described
MOST_COMPARED = 1 << 22  # elements of a batch whose range is measured
COPIED = 1 << 26  # bytes that are moved to time the transfer
WORTH_MOVING = 1 << 20  # bytes of a batch from which that matters
NARROWER = (("uint8", 0, 255), ("int16", -(2**15), 2**15 - 1), ("int32", -(2**31), 2**31 - 1))


@dataclass
class Delivery:
    """The batches of one loader."""

    calls: int = 0
    seconds: float = 0.0
    cpu: float = 0.0  # of the training thread in the meantime
    samples: int = 0
    parts: tuple[BatchPart, ...] = ()  # of one batch
    move: float = 0.0  # seconds to get its bytes into another process
    narrow_move: float = 0.0  # and if it had the narrowest possible dtype


class Deliveries:
    """Observes the loaders' iterators."""

    def __init__(self, watcher: Watcher, guard: Guard) -> None:
        self._watcher = watcher
        self._by_loader: dict[int, Delivery] = {}
        self._starts: dict[int, list[float]] = {}
        self._unsettled: list[tuple[weakref.ref[Any], float]] = []
        self._on_batch = guard.inner(PROBE, self._delivered)
        self._on_start = guard.inner(PROBE, self._started)

    def watch(self, patches: Patches) -> None:
        """In a window: every batch."""
        watcher, on_batch = self._watcher, self._on_batch

        def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
            def wrapper(iterator: Any) -> Any:
                if threading.get_ident() != watcher.thread:
                    return original(iterator)
                began, cpu = perf_counter(), thread_time()
                batch = original(iterator)
                on_batch(iterator, batch, perf_counter() - began, thread_time() - cpu)
                return batch

            return wrapper

        # Not `__next__`, which the seams wrap: wrappers must be removed in reverse order.
        for kind in (_SingleProcessDataLoaderIter, _MultiProcessingDataLoaderIter):
            patches.wrap(kind, "_next_data", wrap)

    def watch_starts(self, patches: Patches) -> None:
        """All the time: how long an epoch takes to begin, as workers may have to be started."""
        watcher, on_start = self._watcher, self._on_start

        def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
            def wrapper(loader: Any) -> Any:
                began = perf_counter()
                iterator = original(loader)
                if threading.get_ident() == watcher.thread:
                    on_start(loader, perf_counter() - began)
                return iterator

            return wrapper

        patches.wrap(DataLoader, "_get_iterator", wrap)

    def _started(self, loader: Any, seconds: float) -> None:
        self.settle()
        self._unsettled.append((weakref.ref(loader), seconds))

    def settle(self) -> None:
        """Assign starts to their loaders, which get their numbers only after they have started."""
        numbers = {id(ref()): number for number, ref in self._watcher.seen_samples.objects.items()}
        waiting, self._unsettled = self._unsettled, []
        for reference, seconds in waiting:
            loader = reference()
            if loader is not None and id(loader) in numbers:
                self._starts.setdefault(numbers[id(loader)], []).append(seconds)
            elif loader is not None:
                self._unsettled.append((reference, seconds))

    def _delivered(self, iterator: Any, batch: Any, seconds: float, cpu: float) -> None:
        number = self._watcher.seen_samples.loaders.get(id(iterator))
        if number is None:
            return
        if self._unsettled:
            self.settle()
        delivery = self._by_loader.setdefault(number, Delivery())
        delivery.calls += 1
        delivery.seconds += seconds
        delivery.cpu += cpu
        if not delivery.parts:
            loader = self._watcher.seen_samples.objects.get(number)
            workers = getattr(loader() if loader is not None else None, "num_workers", 0)
            describe(delivery, batch, moved=workers > 0)

    def facts(self, steps: int) -> Iterator[LoadingFact]:
        """One for each loader that was seen delivering or starting."""
        self.settle()
        for number in sorted({*self._by_loader, *self._starts}):
            delivery = self._by_loader.get(number, Delivery())
            calls, starts = max(delivery.calls, 1), self._starts.get(number, [])
            yield LoadingFact(
                loader=number,
                batches=delivery.calls / steps,
                seconds=delivery.seconds / calls,
                cpu=delivery.cpu / calls,
                samples=delivery.samples,
                parts=delivery.parts,
                move=delivery.move,
                narrow_move=delivery.narrow_move,
                starts=len(starts),
                starting=sum(starts) / len(starts) if starts else 0.0,
            )


def describe(delivery: Delivery, batch: Any, *, moved: bool) -> None:
    """Dtypes and sizes of a batch, and how long it takes to move one of its size."""
    found = instances_in(batch, (Tensor, np.ndarray))
    delivery.parts = tuple(part(array) for array in found[:MOST_PARTS])
    delivery.samples = next((int(a.shape[0]) for a in found if a.ndim), 0)
    total = sum(p.bytes for p in delivery.parts)
    narrow = sum(p.narrow_bytes for p in delivery.parts)
    if moved and total >= WORTH_MOVING:
        pickled = all(isinstance(a, np.ndarray) for a in found)
        delivery.move = moving(total, pickled)
        delivery.narrow_move = moving(narrow, pickled) if narrow < total else delivery.move


def part(array: Tensor | np.ndarray[Any, Any]) -> BatchPart:
    """One tensor of a batch; `fits`: the narrowest dtype that represents the same values, or nearly."""
    dtype = str(array.dtype).removeprefix("torch.")
    fits = narrowest(array, dtype)
    width = {"uint8": 1, "int16": 2, "int32": 4, "float32": 4}.get(fits, 0)
    count, size = math.prod(array.shape), int(array.nbytes)
    return BatchPart(
        shape=tuple(int(n) for n in array.shape),
        dtype=dtype,
        bytes=size,
        fits=fits,
        narrow_bytes=count * width if width else size,
    )


def narrowest(array: Tensor | np.ndarray[Any, Any], dtype: str) -> str:
    """A narrower dtype that represents these values; the dtype itself if there is none."""
    if dtype == "float64":
        return "float32"
    if dtype not in ("int64", "int32", "int16"):
        return dtype
    values = array.detach().reshape(-1) if isinstance(array, Tensor) else array.reshape(-1)
    values = values[:: max(len(values) // MOST_COMPARED, 1)]
    if not len(values):
        return dtype
    low, high = int(values.min()), int(values.max())
    return next((name for name, least, most in NARROWER if least <= low and high <= most), dtype)


def moving(size: int, pickled: bool) -> float:
    """Seconds to send this many bytes to another process: through shared memory, or pickled."""
    copied = max(min(size, COPIED), 1)
    source = torch.zeros(copied, dtype=torch.uint8)
    seconds = []
    for _ in range(2):
        began = perf_counter()
        if pickled:
            pickle.loads(pickle.dumps(source.numpy()))
        else:
            shared = torch.UntypedStorage._new_shared(copied)
            torch.empty(0, dtype=torch.uint8).set_(shared).copy_(source)
        seconds.append(perf_counter() - began)
    return min(seconds) * size / copied


# -- what datasets store --

MANY = 256  # items from which a list is data, not a setting
TRIED = 8  # items that are turned into tensors to time it
LARGE = 1 << 16  # elements from which an array's dtype matters


def kept_data(loaders: Mapping[int, weakref.ref[Any]]) -> list[KeptDataFact]:
    """The facts `profile.kept`: attributes of the datasets of these loaders."""
    found: list[KeptDataFact] = []
    for number, reference in loaders.items():
        loader = reference()
        dataset = innermost(loader.dataset) if loader is not None else None
        if hasattr(dataset, "__dict__"):
            found += [replace(entry, loader=number) for entry in _entries(dataset)]
    return found


def _entries(dataset: Any) -> Iterator[KeptDataFact]:
    for name, value in list(vars(dataset).items()):
        if type(value) is list and len(value) >= MANY:
            yield from _list(name, value)
        for position, array in enumerate(value) if isinstance(value, tuple) else ((-1, value),):
            if _is_wide(array):
                label = name if position < 0 else f"{name}[{position}]"
                yield KeptDataFact(attribute=label, of="float64", items=len(array), numbers=_size(array))


def _list(name: str, value: list[Any]) -> Iterator[KeptDataFact]:
    """A list of lists of numbers; a flat list of numbers is no worse than an array."""
    items = [value[n * (len(value) - 1) // (TRIED - 1)] for n in range(TRIED)]
    if not all(_is_numbers(item) for item in items):
        return
    began = perf_counter()
    try:
        tensors = [torch.tensor(item) for item in items]
    except (ValueError, TypeError):  # ragged further in
        return
    made = perf_counter()
    for tensor in tensors:
        tensor.clone()
    ended = perf_counter()
    yield KeptDataFact(
        attribute=name,
        of="list",
        items=len(value),
        numbers=int(np.mean([t.numel() for t in tensors])),
        seconds=(made - began) / TRIED,
        needed=(ended - made) / TRIED,
    )


def _is_numbers(item: Any) -> bool:
    """A Python list of numbers, or of such lists, all of the same length."""
    for _ in range(3):
        if type(item) is not list or not item:
            return False
        if all(type(one) in (int, float) for one in item):
            return True
        if not all(type(one) is list and len(one) == len(item[0]) for one in item):
            return False
        item = item[0]
    return False


def _is_wide(array: Any) -> bool:
    if type(array) is Tensor:
        return array.dtype is torch.float64 and array.dim() > 1 and array.numel() >= LARGE
    return type(array) is np.ndarray and array.dtype == np.float64 and array.ndim > 1 and array.size >= LARGE


def _size(array: Any) -> int:
    return int(array.numel() if isinstance(array, Tensor) else array.size)
