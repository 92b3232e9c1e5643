"""Measures the transfer of a batch from a worker to the parent, with a real worker process.

Tensors go through shared memory, everything else is pickled into a pipe. The worker handles one batch
at a time, so that building, sending and receiving it follow each other.
"""

from __future__ import annotations

import copy
import pickle
from statistics import median
from time import perf_counter
from typing import Any

from torch.utils.data import DataLoader, Dataset

from clew.labs.loaders.speed.loader_rate import PATIENCE, has_accelerator, samples_in, tensors_bytes
from clew.measure.nested_tensors import map_tensors
from clew.records.loader_speed import Moving

FEWEST, MOST = 4, 200  # batches


class _LoadedSamples(Dataset[Any]):
    """Samples that are already loaded; shallow copies, as collate may take them apart."""

    def __init__(self, samples: list[Any], length: int) -> None:
        self._samples = samples
        self._length = length

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> Any:
        return copy.copy(self._samples[index % len(self._samples)])


def measure_transfer(samples: list[Any], collate: Any, seconds: float, context: Any = None) -> Moving:
    """The transfer of a batch of these samples; `collate` None: each is a batch."""
    batch = collate(_shallow(samples)) if collate is not None else samples[0]
    shared, piped = float(tensors_bytes(batch)), float(piped_bytes(batch))
    count = float(len(samples) if collate is not None else samples_in(batch))
    return Moving(shared, piped, _timed(samples, collate, seconds, context), count)


def _shallow(samples: list[Any]) -> list[Any]:
    return [copy.copy(sample) for sample in samples]


def piped_bytes(batch: Any) -> int:
    """Of all but the tensors, pickled."""
    try:
        return len(pickle.dumps(map_tensors(batch, lambda _: None), pickle.HIGHEST_PROTOCOL))
    except Exception:  # noqa: BLE001 - the loader itself reports what can't be pickled
        return 0


def _timed(samples: list[Any], collate: Any, seconds: float, context: Any) -> float | None:
    """Seconds for a batch from a worker, minus the time to build it."""
    per_batch = len(samples) if collate is not None else 1
    loader: Any = DataLoader(
        _LoadedSamples(samples, per_batch * MOST),
        batch_size=per_batch if collate is not None else None,
        collate_fn=collate,
        num_workers=1,
        prefetch_factor=1,
        timeout=PATIENCE,
        multiprocessing_context=context,
    )
    iterator = iter(loader)
    try:
        whole = _intervals(iterator, seconds)
    finally:
        iterator._shutdown_workers()
    return max(median(whole) - _making(samples, collate, len(whole)), 0.0) if whole else None


def _intervals(iterator: Any, seconds: float) -> list[float]:
    """Without the first ones, which include the worker's start."""
    found: list[float] = []
    began = asked = perf_counter()
    for number, _ in enumerate(iterator):
        now = perf_counter()
        if number >= 2:
            found.append(now - asked)
        asked = perf_counter()
        if now - began > seconds and len(found) >= FEWEST:
            break
        if now - began > 3 * seconds and found:
            break
    return found


def _making(samples: list[Any], collate: Any, times: int) -> float:
    """Seconds to build a batch in this process."""
    if collate is None:
        return 0.0
    spent = []
    for _ in range(min(max(times, 1), 20)):
        began = perf_counter()
        collate(_shallow(samples))
        spent.append(perf_counter() - began)
    return median(spent)


def measure_pinning(batch: Any) -> float | None:
    """Seconds to copy a batch into page-locked memory; None without an accelerator that needs it."""
    if not has_accelerator():
        return None
    from torch.utils.data._utils.pin_memory import pin_memory

    spent = []
    for _ in range(5):
        began = perf_counter()
        pin_memory(batch)
        spent.append(perf_counter() - began)
    return median(spent)
