"""The viewer's index of series: any zoom of ten million points in milliseconds.

It is built only from the log, in the viewer's own cache; a refresh reads what is new. `ingest` fills it,
`index_layout` is its layout, `downsampling` is the arithmetic.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from clew.records.site import Site
from clew.store.index.downsampling import Envelope, joined_envelopes, raw_envelope, regrouped
from clew.store.index.index_cache import (
    StaleCache,
    cache_file,
    is_busy,
    open_cache,
    remove_cache,
    transaction,
)
from clew.store.index.index_layout import STEPS_LANE, Lane, Stretch, load_band, load_rows, read_stretch
from clew.store.index.ingest import Intake, site_key
from clew.store.read.run_reader import check_is_run, read_meta
from clew.store.read.segment_tail import Tail, rank_folders, segment_files

__all__ = ["Envelope", "Index", "SeriesName", "Stretch", "site_key"]

STEP_RANGE = (-(2**63), 2**63 - 1)

T = TypeVar("T")


class SeriesName(NamedTuple):
    """A series that can be queried."""

    signal: str
    site: Site
    site_key: str
    rank: int


class SeriesPart(NamedTuple):
    """A part of a series: where it is in the index, and which steps it covers."""

    rank: int
    signal: str
    site_key: str
    band: int


class Index:
    """The index of one run. Safe to use from several threads and several viewers."""

    def __init__(self, run_path: str | Path) -> None:
        self._run = Path(run_path)
        check_is_run(self._run)
        self._file = cache_file(self._run, read_meta(self._run)[0].id or "")
        self._lock = threading.RLock()
        self.generation = 0  # grows when the cache had to be rebuilt: row numbers then start again
        self._db = open_cache(self._file)

    def close(self) -> None:
        with self._lock:
            self._db.close()

    def refresh(self) -> bool:
        """Read what was written since; False if another viewer is refreshing right now."""
        try:
            self._sound(self._ingest)
        except sqlite3.OperationalError as e:
            if is_busy(e):
                return False
            raise
        return True

    def series_names(self) -> list[SeriesName]:
        """All series that can be queried, in the order in which they appeared."""
        query = "SELECT signal, site, rank FROM series GROUP BY rank, signal, site ORDER BY min(rowid)"
        rows = self._sound(lambda: self._db.execute(query).fetchall())
        sites = {key: Site.from_json(json.loads(key)) for key in {row[1] for row in rows}}
        return [SeriesName(signal, sites[key], key, rank) for signal, key, rank in rows]

    def parts(self, after: int = 0) -> tuple[int, list[SeriesPart]]:
        """Which series are where, from row `after` on; and the row to continue from next time."""
        query = "SELECT rowid, rank, signal, site, band FROM series WHERE rowid > ? ORDER BY rowid"
        rows = self._sound(lambda: self._db.execute(query, (after,)).fetchall())
        return (rows[-1][0] if rows else after), [SeriesPart(*row[1:]) for row in rows]

    def extents(self) -> dict[int, tuple[int, int, int]]:
        """For each band its number of rows, first step and last step."""
        return self._sound(self._extents)

    def _extents(self) -> dict[int, tuple[int, int, int]]:
        found = {}
        for (number,) in self._db.execute("SELECT id FROM bands WHERE rows > 0").fetchall():
            band = load_band(self._db, number)
            first = int(load_rows(self._db, band, 0, STEPS_LANE, 0, 1)[0][0, 0])
            found[number] = (band.rows, first, band.last)
        return found

    def wide(
        self,
        signal: str,
        lo: int | None = None,
        hi: int | None = None,
        max_points: int = 300,
        rank: int | None = None,
    ) -> list[Stretch]:
        """The signal at all its sites between two steps, with one stretch for each table that has it."""
        steps = (STEP_RANGE[0] if lo is None else int(lo), STEP_RANGE[1] if hi is None else int(hi))
        return self._sound(lambda: self._wide(signal, rank, steps, max(int(max_points), 1)))

    def _wide(self, signal: str, rank: int | None, steps: tuple[int, int], limit: int) -> list[Stretch]:
        query = (
            "SELECT band, k, site FROM series WHERE signal=? AND rank=coalesce(?, rank) ORDER BY band, k, col"
        )
        places: dict[tuple[int, int], list[str]] = {}
        for band, k, site in self._db.execute(query, (signal, rank)).fetchall():
            places.setdefault((band, k), []).append(site)
        found = [
            read_stretch(self._db, load_band(self._db, band), k, sites, steps, limit)
            for (band, k), sites in places.items()
        ]
        return [stretch for stretch in found if stretch is not None]

    def query(
        self,
        signal: str,
        site_key: str | None = None,
        lo: int | None = None,
        hi: int | None = None,
        max_points: int = 2000,
        rank: int | None = None,
    ) -> Envelope:
        """The series between two steps (both included), in at most `max_points` buckets.

        Without a site, the first one; without a rank, the lowest one that has the series.
        """
        first = STEP_RANGE[0] if lo is None else max(int(lo), STEP_RANGE[0])
        last = STEP_RANGE[1] if hi is None else min(int(hi), STEP_RANGE[1])
        return self._sound(
            lambda: self._query(signal, site_key, rank, (first, last), max(int(max_points), 1))
        )

    def _sound(self, work: Callable[[], T]) -> T:
        """Call `work`; if the cache turns out to be broken, rebuild it and call once more."""
        with self._lock:
            try:
                return work()
            except (sqlite3.DatabaseError, StaleCache, ValueError) as e:
                if isinstance(e, sqlite3.Error) and is_busy(e):
                    raise
                self._rebuild()
                return work()

    def _rebuild(self) -> None:
        self.generation += 1
        self._db.close()
        remove_cache(self._file)
        self._db = open_cache(self._file)
        self._ingest()

    def _ingest(self) -> None:
        with transaction(self._db):
            for rank, folder in rank_folders(self._run).items():
                intake = Intake(self._db, rank)
                for segment in segment_files(folder):
                    self._follow(segment, intake)
                intake.store()

    def _follow(self, segment: Path, intake: Intake) -> None:
        name = f"{segment.parent.name}/{segment.name}"
        found = self._db.execute("SELECT offset FROM cursors WHERE segment=?", (name,)).fetchone()
        tail = Tail(segment, found[0] if found else 0)
        if segment.is_file() and segment.stat().st_size < tail.offset:
            raise StaleCache("the log was replaced")
        tail.read(intake.feed)
        self._db.execute("INSERT OR REPLACE INTO cursors VALUES (?,?)", (name, tail.offset))

    def _query(
        self, signal: str, key: str | None, rank: int | None, steps: tuple[int, int], limit: int
    ) -> Envelope:
        lanes = [(lane, *lane.ordinals(*steps)) for lane in self._lanes(signal, key, rank)]
        total = sum(end - start for _, start, end in lanes)
        if total <= limit:
            parts = [raw_envelope(*lane.rows(start, end)) for lane, start, end in lanes]
        else:
            parts = [lane.buckets(a, b, max(1, limit * (b - a) // total)) for lane, a, b in lanes if b > a]
        nothing = raw_envelope(np.empty(0, np.int64), np.empty(0))
        return regrouped(joined_envelopes([*parts, nothing]), limit)

    def _lanes(self, signal: str, key: str | None, rank: int | None) -> list[Lane]:
        query = (
            "SELECT rank, site FROM series WHERE signal=? AND site=coalesce(?, site)"
            " AND rank=coalesce(?, rank) ORDER BY rank, rowid LIMIT 1"
        )
        found = self._db.execute(query, (signal, key, rank)).fetchone()
        if found is None:
            return []
        query = "SELECT band, k, col FROM series WHERE rank=? AND signal=? AND site=? ORDER BY rowid"
        rows = self._db.execute(query, (found[0], signal, found[1])).fetchall()
        return [Lane(self._db, load_band(self._db, band), k, col) for band, k, col in rows]
