"""One open run: an index for its series, its facts and events in memory, nothing else.

Rows are never kept in memory: a run of ten million points costs only what its facts cost.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
import time
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from clew.records import signals
from clew.records.facts.fact import TypedFact
from clew.records.facts.model_facts import ModelFact
from clew.records.facts.run_facts import CustomSignalFact, VersionsFact
from clew.records.facts.step_facts import FedFact, LoaderFact
from clew.records.signal_types import Signal
from clew.records.site import Site
from clew.store.index.series_index import Envelope, Index
from clew.store.read.run_data import Event, Fact, RunData
from clew.store.read.run_reader import read_meta
from clew.store.read.segment_tail import RankTail, rank_folders
from clew.web.answers.series_catalogue import Catalogue, SeriesEntry

F = TypeVar("F", bound=TypedFact)

LONG_SECONDS = 0.2  # a refresh that took longer has read a lot
REFRESH_SECONDS = 0.3  # a burst of requests checks the log once


def give_back_memory() -> None:
    """After reading a lot: glibc keeps freed memory, and a viewer may stay open for days."""
    with contextlib.suppress(OSError, AttributeError, TypeError):  # not glibc
        ctypes.CDLL(None).malloc_trim(0)


class RecordedSeries(RunData):
    """The contents of a log except its rows, which the index has."""

    def feed(self, payload: bytes) -> None:
        if payload[:1] != b"B":
            super().feed(payload)


class OpenRun:
    """Safe to use from several threads; `refresh` adds what was written since."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.users = 0  # the library counts its users
        self.meta, self.meta_damage = read_meta(path)
        self.index = Index(path)
        self.catalogue = Catalogue(self.index, self.depth, self._custom_signals)
        self._data: dict[int, RecordedSeries] = {}
        self._tails: dict[int, RankTail] = {}
        self._order: dict[tuple[str, str], int] = {}
        self._known: dict[tuple[type[TypedFact], int], list[Any]] = {}
        self.lock = threading.RLock()
        self._stamp: object = None
        self._refreshed = 0.0

    def close(self) -> None:
        with self.lock:
            self.index.close()

    def refresh(self, stamp: object = None) -> None:
        """Read what is new, unless `stamp` (the length of the log) shows that nothing is."""
        with self.lock:
            now = time.monotonic()
            if (stamp is not None and stamp == self._stamp) or now - self._refreshed < REFRESH_SECONDS:
                return
            self._read()
            whole_log = self.index.refresh()  # else another viewer is indexing; try again next time
            self.catalogue.refresh()
            self._stamp, self._refreshed = (stamp if whole_log else None), time.monotonic()
            if self._refreshed - now > LONG_SECONDS:
                give_back_memory()

    def _read(self) -> None:
        for rank, folder in rank_folders(self.path).items():
            if rank not in self._tails:
                self._data[rank] = RecordedSeries()
                self._tails[rank] = RankTail(folder, self._data[rank].feed)
            self._tails[rank].refresh()
        models = self.known(ModelFact)
        order = {(model.root, layer.path): at for model in models for at, layer in enumerate(model.layers)}
        if order != self._order:
            self._order = order
            self.catalogue.reorder()

    @property
    def ranks(self) -> list[int]:
        return sorted(self._data)

    def rank(self, asked: int | None) -> int:
        """The requested rank, or the lowest."""
        return asked if asked is not None else min(self._data, default=0)

    def facts(self, kind: type[TypedFact], rank: int | None = None) -> list[Fact]:
        """The facts of a kind as they were recorded."""
        data = self._data.get(self.rank(rank))
        found = data.facts if data else []
        return [fact for fact in found if fact.kind == kind.fact_kind and isinstance(fact.data, dict)]

    def known(self, kind: type[F], rank: int | None = None) -> list[F]:
        """The facts of a kind, each read once; what is missing or damaged in them is at its default."""
        with self.lock:
            read: list[F] = self._known.setdefault((kind, self.rank(rank)), [])
            new = self.facts(kind, rank)[len(read) :]
            read += [kind.read(fact.data, fact.step) for fact in new]
            return read

    def events(self, rank: int | None = None) -> list[Event]:
        data = self._data.get(self.rank(rank))
        return list(data.events) if data else []

    def _custom_signals(self) -> list[CustomSignalFact]:
        return [fact for rank in self.ranks for fact in self.known(CustomSignalFact, rank)]

    def depth(self, site: Site) -> int:
        """Position in the forward pass; unknown layers come last."""
        root = site.root or next((root for root, _ in self._order), "")
        return self._order.get((root, site.module or ""), len(self._order))

    def versions(self, rank: int | None = None) -> dict[str, Any]:
        """Those in run.json, and torch's, which became known only during the run."""
        found = dict(self.meta.versions)
        for fact in self.known(VersionsFact, rank):
            found["torch"] = fact.torch
        return found

    def query(self, entry: SeriesEntry, lo: int | None, hi: int | None, points: int) -> Envelope:
        return self.index.query(entry.signal, entry.site_key, lo, hi, points, entry.rank)

    def only(self, signal: Signal, rank: int | None = None) -> SeriesEntry | None:
        """The first series of a signal."""
        return next(iter(self.catalogue.find(signal.name, self.rank(rank))), None)

    def span(self, rank: int | None = None) -> tuple[int, int] | None:
        """The first and last step recorded."""
        wanted = self.rank(rank)
        bands = {band for e in self.catalogue.entries.values() if e.rank == wanted for band in e.bands}
        spans = [extent for band, extent in self.catalogue.extents.items() if band in bands]
        return (min(s[1] for s in spans), max(s[2] for s in spans)) if spans else None

    def steps_per_epoch(self, rank: int | None = None) -> tuple[float, str] | None:
        """From the training loader, if its length is known; and which loader that is."""
        loader = self._training_loader(rank)
        if loader is None or not loader.length or not loader.batch_size:
            return None
        length, batch = loader.length, loader.batch_size
        batches = length // batch if loader.drop_last else -(-length // batch)
        sizes = self.only(signals.BATCH_SIZE, rank)
        mean = float(self.query(sizes, None, None, 1).means()[0]) if sizes else float("nan")
        taken = max(1, round(mean / batch)) if np.isfinite(mean) else 1  # several, if gradients accumulate
        return max(batches, 1) / taken, f"the loader at {Path(loader.file or '').name}:{loader.line}"

    def _training_loader(self, rank: int | None) -> LoaderFact | None:
        loaders = {loader.index: loader for loader in self.known(LoaderFact, rank)}
        for fed in self.known(FedFact, rank):
            if fed.phase == "train" and fed.loader in loaders:
                return loaders[fed.loader]
        return next(iter(loaders.values())) if len(loaders) == 1 else None
