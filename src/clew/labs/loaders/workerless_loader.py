"""Runs every loader without workers, in one process, where debuggers and tracebacks work.

Every loader that the program creates gets no workers. The order of the samples stays the same, because the
main process draws it in any case. Random numbers that a dataset draws differ: each worker had its own
generator, and now the program's is used.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from torch.utils.data import DataLoader
from torch.utils.data._utils import worker
from torch.utils.data.dataloader import _SingleProcessDataLoaderIter

from clew.hooks.entry.patches import Patches
from clew.labs.loaders.readable_loader import NO_WORKERS
from clew.measure.rng import keep_rng
from clew.records.plural import counted


class WorkerlessLoaders:
    """While it is installed, no loader starts a process."""

    def __init__(self) -> None:
        self._patches = Patches()
        self._changed: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self.loaders = 0
        self.workers = 0

    def install(self, safely: Callable[[Callable[..., None]], Callable[..., None]]) -> None:
        """`safely` wraps a function so that none of Clew's failures can reach the program."""
        self._strip_safely, self._init_safely = safely(self._strip), safely(as_worker)
        self._patches.wrap(DataLoader, "__init__", self._after_making)
        self._patches.wrap(_SingleProcessDataLoaderIter, "__init__", self._before_iterating)

    def remove(self) -> None:
        self._patches.remove()

    def _after_making(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(loader: Any, *args: Any, **kwargs: Any) -> None:
            original(loader, *args, **kwargs)
            if loader.num_workers:
                self._strip_safely(loader)

        return wrapper

    def _strip(self, loader: Any) -> None:
        self.loaders += 1
        self.workers += loader.num_workers
        self._changed[loader] = loader.num_workers
        vars(loader).update(NO_WORKERS)

    def _before_iterating(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(iterator: Any, loader: Any) -> None:
            original(iterator, loader)
            if loader in self._changed and loader.worker_init_fn is not None:
                self._init_safely(loader.dataset, loader.worker_init_fn)

        return wrapper

    def summary(self) -> list[str]:
        """What was done, in a few lines."""
        if not self.loaders:
            return ["--bare: no loader of this script uses workers"]
        loaders, workers = counted(self.loaders, "loader"), counted(self.workers, "worker")
        return [
            f"--bare: {loaders} ran in this process, without the {workers} of the script",
            "random numbers drawn while reading differ from those of workers; everything else is the same",
        ]


def as_worker(dataset: Any, init: Callable[[int], Any]) -> None:
    """What a worker does before it reads (opens files, say), without its seeding of this process."""
    before = worker._worker_info
    worker._worker_info = worker.WorkerInfo(id=0, num_workers=1, seed=0, dataset=dataset)
    try:
        with keep_rng():
            init(0)
    finally:
        worker._worker_info = before
