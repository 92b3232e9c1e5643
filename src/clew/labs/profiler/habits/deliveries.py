"""The batches that loaders deliver during a profile: how long each takes, its size and dtypes."""

from __future__ import annotations

import math
import pickle
import threading
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from time import perf_counter, thread_time
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter, _SingleProcessDataLoaderIter

from clew.hooks.entry.guard import Guard
from clew.hooks.entry.patches import Patches
from clew.hooks.steps.watcher import Watcher
from clew.measure.nested_tensors import instances_in
from clew.records.facts.profile_facts import LoadingFact

LOOKED_AT = 1 << 22  # elements of a batch whose range is looked at
COPIED = 1 << 26  # bytes that are moved to see how long moving takes
WORTH_MOVING = 1 << 20  # bytes of a batch from which on that is of interest
NARROWER = (("uint8", 0, 255), ("int16", -(2**15), 2**15 - 1), ("int32", -(2**31), 2**31 - 1))


@dataclass
class Delivery:
    """The batches of one loader."""

    calls: int = 0
    seconds: float = 0.0
    cpu: float = 0.0  # of the training thread meanwhile
    samples: int = 0
    parts: list[dict[str, Any]] = field(default_factory=list)  # of one batch
    move: float = 0.0  # seconds to get its bytes into another process
    narrow_move: float = 0.0  # and if it were as narrow as it could be


class Deliveries:
    """Follows the loaders' iterators."""

    def __init__(self, watcher: Watcher, guard: Guard) -> None:
        self._watcher = watcher
        self._by_loader: dict[int, Delivery] = {}
        self._starts: dict[int, list[float]] = {}
        self._unsettled: list[tuple[weakref.ref[Any], float]] = []
        self._came = guard.inner("observing", self._delivered)
        self._began = guard.inner("observing", self._started)

    def watch(self, patches: Patches) -> None:
        """In a window: every batch."""
        watcher, came = self._watcher, self._came

        def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
            def wrapper(iterator: Any) -> Any:
                if threading.get_ident() != watcher.thread:
                    return original(iterator)
                began, cpu = perf_counter(), thread_time()
                batch = original(iterator)
                came(iterator, batch, perf_counter() - began, thread_time() - cpu)
                return batch

            return wrapper

        # Not `__next__`, which the seams wrap: wrappers must come off in the order they came on.
        for kind in (_SingleProcessDataLoaderIter, _MultiProcessingDataLoaderIter):
            patches.wrap(kind, "_next_data", wrap)

    def watch_starts(self, patches: Patches) -> None:
        """All the time: how long it takes to begin an epoch, as workers may have to be started."""
        watcher, started = self._watcher, self._began

        def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
            def wrapper(loader: Any) -> Any:
                began = perf_counter()
                iterator = original(loader)
                if threading.get_ident() == watcher.thread:
                    started(loader, perf_counter() - began)
                return iterator

            return wrapper

        patches.wrap(DataLoader, "_get_iterator", wrap)

    def _started(self, loader: Any, seconds: float) -> None:
        self.settle()
        self._unsettled.append((weakref.ref(loader), seconds))

    def settle(self) -> None:
        """Give starts to their loaders, which get their numbers only after they have started."""
        numbers = {id(ref()): number for number, ref in self._watcher.feeding.objects.items()}
        waiting, self._unsettled = self._unsettled, []
        for reference, seconds in waiting:
            loader = reference()
            if loader is not None and id(loader) in numbers:
                self._starts.setdefault(numbers[id(loader)], []).append(seconds)
            elif loader is not None:
                self._unsettled.append((reference, seconds))

    def _delivered(self, iterator: Any, batch: Any, seconds: float, cpu: float) -> None:
        number = self._watcher.feeding.loaders.get(id(iterator))
        if number is None:
            return
        if self._unsettled:
            self.settle()
        delivery = self._by_loader.setdefault(number, Delivery())
        delivery.calls += 1
        delivery.seconds += seconds
        delivery.cpu += cpu
        if not delivery.parts:
            loader = self._watcher.feeding.objects.get(number)
            workers = getattr(loader() if loader is not None else None, "num_workers", 0)
            describe(delivery, batch, moved=workers > 0)

    def facts(self, steps: int) -> Iterator[LoadingFact]:
        """One for each loader that was seen at work, or started."""
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
                parts=tuple(delivery.parts),
                move=delivery.move,
                narrow_move=delivery.narrow_move,
                starts=len(starts),
                starting=sum(starts) / len(starts) if starts else 0.0,
            )


def describe(delivery: Delivery, batch: Any, *, moved: bool) -> None:
    """Types and sizes of a batch, and how long it takes to move one of its size."""
    found = instances_in(batch, (Tensor, np.ndarray))
    delivery.parts = [part(array) for array in found[:16]]
    delivery.samples = next((int(a.shape[0]) for a in found if a.ndim), 0)
    total = sum(p["bytes"] for p in delivery.parts)
    narrow = sum(p["narrow_bytes"] for p in delivery.parts)
    if moved and total >= WORTH_MOVING:
        pickled = all(isinstance(a, np.ndarray) for a in found)
        delivery.move = moving(total, pickled)
        delivery.narrow_move = moving(narrow, pickled) if narrow < total else delivery.move


def part(array: Tensor | np.ndarray[Any, Any]) -> dict[str, Any]:
    """One tensor of a batch; `fits`: the narrowest type that holds the same values, or close to."""
    dtype = str(array.dtype).removeprefix("torch.")
    fits = narrowest(array, dtype)
    width = {"uint8": 1, "int16": 2, "int32": 4, "float32": 4}.get(fits, 0)
    count, size = math.prod(array.shape), int(array.nbytes)
    return {
        "shape": [int(n) for n in array.shape],
        "dtype": dtype,
        "bytes": size,
        "fits": fits,
        "narrow_bytes": count * width if width else size,
    }


def narrowest(array: Tensor | np.ndarray[Any, Any], dtype: str) -> str:
    """A narrower type that these values fit into; the type itself if there is none."""
    if dtype == "float64":
        return "float32"
    if dtype not in ("int64", "int32", "int16"):
        return dtype
    values = array.detach().reshape(-1) if isinstance(array, Tensor) else array.reshape(-1)
    values = values[:: max(len(values) // LOOKED_AT, 1)]
    if not len(values):
        return dtype
    low, high = int(values.min()), int(values.max())
    return next((name for name, least, most in NARROWER if least <= low and high <= most), dtype)


def moving(size: int, pickled: bool) -> float:
    """Seconds to hand so many bytes to another process: through shared memory, or pickled."""
    looked_at = max(min(size, COPIED), 1)
    source = torch.zeros(looked_at, dtype=torch.uint8)
    seconds = []
    for _ in range(2):
        began = perf_counter()
        if pickled:
            pickle.loads(pickle.dumps(source.numpy()))
        else:
            shared = torch.UntypedStorage._new_shared(looked_at)
            torch.empty(0, dtype=torch.uint8).set_(shared).copy_(source)
        seconds.append(perf_counter() - began)
    return min(seconds) * size / looked_at
