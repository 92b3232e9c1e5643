"""One open run: an index for its series, its facts and events in memory, nothing else.

Rows are never held: a run of ten million points costs what its facts cost.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from clew.checks.evidence.recorded_facts import rows, text, whole
from clew.records.facts.model_facts import ModelFact
from clew.records.site import Site
from clew.store.index.series_index import Envelope, Index
from clew.store.read.run_data import Event, Fact, RunData
from clew.store.read.run_reader import read_meta
from clew.store.read.segment_tail import RankTail, rank_folders
from clew.web.answers.series_catalogue import Catalogue, SeriesEntry

LONG_SECONDS = 0.2  # a look that took longer has read a lot
REFRESH_SECONDS = 0.3  # a burst of requests looks at the log once


def give_back_memory() -> None:
    """After much was read: glibc keeps what was freed, and a viewer may stay open for days."""
    with contextlib.suppress(OSError, AttributeError, TypeError):  # not glibc
        ctypes.CDLL(None).malloc_trim(0)


class RecordedSeries(RunData):
    """What a log says but for its rows, which the index has."""

    def feed(self, payload: bytes) -> None:
        if payload[:1] != b"B":
            super().feed(payload)


class OpenRun:
    """Safe to use from several threads; `refresh` takes in what was written since."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.users = 0  # the library counts who is at it
        self.meta, self.meta_damage = read_meta(path)
        self.index = Index(path)
        self.catalogue = Catalogue(self.index, self.depth)
        self._data: dict[int, RecordedSeries] = {}
        self._tails: dict[int, RankTail] = {}
        self._order: dict[tuple[str, str], int] = {}
        self._models = 0
        self._lock = threading.RLock()
        self._stamp: object = None
        self._looked = 0.0

    def close(self) -> None:
        with self._lock:
            self.index.close()

    def refresh(self, stamp: object = None) -> None:
        """Read what is new, unless `stamp` (how long the log is) says that nothing is."""
        with self._lock:
            now = time.monotonic()
            if (stamp is not None and stamp == self._stamp) or now - self._looked < REFRESH_SECONDS:
                return
            self._read()
            whole_log = self.index.refresh()  # else another viewer is at it, and next time will do
            self.catalogue.refresh()
            self._stamp, self._looked = (stamp if whole_log else None), time.monotonic()
            if self._looked - now > LONG_SECONDS:
                give_back_memory()

    def _read(self) -> None:
        for rank, folder in rank_folders(self.path).items():
            if rank not in self._tails:
                self._data[rank] = RecordedSeries()
                self._tails[rank] = RankTail(folder, self._data[rank].feed)
            self._tails[rank].refresh()
        models = self.facts("model")
        if len(models) != self._models:
            self._models = len(models)
            self._order = {
                (model.root, layer.path): at
                for model in (ModelFact.read(fact.data) for fact in models)
                for at, layer in enumerate(model.layers)
            }
            self.catalogue.reorder()

    @property
    def lock(self) -> threading.RLock:
        return self._lock

    @property
    def ranks(self) -> list[int]:
        return sorted(self._data)

    def rank(self, asked: int | None) -> int:
        """The rank asked for, or the lowest."""
        return asked if asked is not None else min(self._data, default=0)

    def facts(self, kind: str, rank: int | None = None) -> list[Fact]:
        data = self._data.get(self.rank(rank))
        return [f for f in data.facts if f.kind == kind and isinstance(f.data, dict)] if data else []

    def events(self, rank: int | None = None) -> list[Event]:
        data = self._data.get(self.rank(rank))
        return list(data.events) if data else []

    def depth(self, site: Site) -> int:
        """Position in the forward pass; unknown layers come last."""
        root = site.root or next((root for root, _ in self._order), "")
        return self._order.get((root, site.module or ""), len(self._order))

    def modules(self, rank: int | None = None) -> dict[tuple[str, str], dict[str, Any]]:
        """The newest row of every module of every model, in forward order."""
        found: dict[tuple[str, str], dict[str, Any]] = {}
        for fact in self.facts("model", rank):
            root = text(fact.data.get("root")) or ""
            for row in rows(fact.data.get("modules")):
                found[root, text(row.get("path")) or ""] = dict(row)
        return found

    def query(self, entry: SeriesEntry, lo: int | None, hi: int | None, points: int) -> Envelope:
        return self.index.query(entry.signal, entry.site_key, lo, hi, points, entry.rank)

    def only(self, signal: str, rank: int | None = None) -> SeriesEntry | None:
        """The first series of a signal."""
        return next(iter(self.catalogue.find(signal, self.rank(rank))), None)

    def span(self, rank: int | None = None) -> tuple[int, int] | None:
        """The first and last step recorded."""
        wanted = self.rank(rank)
        bands = {band for e in self.catalogue.entries.values() if e.rank == wanted for band in e.bands}
        spans = [extent for band, extent in self.catalogue.extents.items() if band in bands]
        return (min(s[1] for s in spans), max(s[2] for s in spans)) if spans else None

    def steps_per_epoch(self, rank: int | None = None) -> tuple[float, str] | None:
        """From the loader that feeds the training, if its length is known; and which one that is."""
        loader = self._training_loader(rank)
        length = whole(loader.get("length")) if loader else None
        batch = whole(loader.get("batch_size")) if loader else None
        if loader is None or not length or not batch:
            return None
        batches = length // batch if loader.get("drop_last") is True else -(-length // batch)
        sizes = self.only("batch.size", rank)
        mean = float(self.query(sizes, None, None, 1).means()[0]) if sizes else float("nan")
        taken = max(1, round(mean / batch)) if np.isfinite(mean) else 1  # several, if gradients accumulate
        place = f"{Path(str(loader.get('file') or '')).name}:{loader.get('line')}"
        return max(batches, 1) / taken, f"the loader at {place}"

    def _training_loader(self, rank: int | None) -> dict[str, Any] | None:
        loaders = {whole(f.data.get("index")): f.data for f in self.facts("loader", rank)}
        fed = [whole(f.data.get("loader")) for f in self.facts("fed", rank) if f.data.get("phase") == "train"]
        known = [loaders[index] for index in fed if index in loaders]
        if known:
            return dict(known[0])
        return dict(next(iter(loaders.values()))) if len(loaders) == 1 else None
