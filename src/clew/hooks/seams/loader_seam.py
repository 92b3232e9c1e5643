"""The seams of loaders: batches, and how long the program waits for them."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from dataclasses import replace
from time import perf_counter
from typing import Any

from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _BaseDataLoaderIter

from clew.hooks.collect_loop import dataset_contents
from clew.hooks.collect_loop.dataset_contents import DatasetWatch
from clew.hooks.entry.user_line import line_of_creation, user_line
from clew.hooks.entry.variable_names import names_in_callers
from clew.hooks.seams.probes import Probes


def watch_data(probes: Probes) -> None:
    watcher = probes.watcher
    known: dict[Any, int] = {}
    feeding, datasets = watcher.feeding, DatasetWatch(watcher.sink)

    def iterated(iterator: Any, loader: DataLoader[Any], *__: Any, **___: Any) -> None:
        file, line = user_line()
        key = (id(loader), file, line)
        index = known.setdefault(key, len(known))
        if index not in feeding.names:
            feeding.names[index] = names_in_callers(loader)
            fact = dataset_contents.loader_fact(loader, index, file, line)
            made_file, made_line = watcher.models.where_made(loader)
            known_as = tuple(feeding.names[index][:8])
            fact = replace(fact, names=known_as, made_file=made_file, made_line=made_line)
            fact = replace(fact, **datasets.describe(loader))
            fact.write(watcher.sink, watcher.clock.step)
        feeding.loaders[id(iterator)] = index
        feeding.objects[index] = weakref.ref(loader)
        if feeding.held is not None:
            feeding.held[index] = loader  # `for x in DataLoader(…)` releases it at once
        datasets.epoch_began(loader, index, watcher.clock.step)

    machine = probes.machine

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(iterator: Any) -> Any:
            if threading.get_ident() != machine.thread:
                return original(iterator)
            began = perf_counter()
            result = original(iterator)
            seconds = perf_counter() - began
            feeding.source = id(iterator)
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
