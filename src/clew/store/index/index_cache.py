"""SQLite cache of the index: its place, its schema and its chunks.

If anything is wrong with it (another version, a torn file, flipped bytes), it raises `StaleCache`, and the
index is built again from the log.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

VERSION = 2  # of the schema and of the chunks' content
BUSY_SECONDS = 5.0  # seconds to wait for another viewer that is refreshing the same index
UNUSED_DAYS = 30  # an index not opened for this long is deleted: it can be built again

SCHEMA = """
CREATE TABLE info(version INTEGER);
CREATE TABLE cursors(segment TEXT PRIMARY KEY, offset INTEGER);
CREATE TABLE declared(rank INTEGER, is_table INTEGER, payload BLOB, UNIQUE(rank, payload));
CREATE TABLE bands(id INTEGER PRIMARY KEY, rank INTEGER, key TEXT, dtype TEXT, sites INTEGER,
                   signals INTEGER, rows INTEGER, last INTEGER);
CREATE INDEX band_by_key ON bands(rank, key);
CREATE TABLE series(rank INTEGER, signal TEXT, site TEXT, band INTEGER, k INTEGER, col INTEGER);
CREATE INDEX series_by_name ON series(rank, signal, site);
CREATE TABLE spans(band INTEGER, seq INTEGER, hi INTEGER, PRIMARY KEY(band, seq));
CREATE INDEX span_by_step ON spans(band, hi);
CREATE TABLE chunks(band INTEGER, level INTEGER, lane INTEGER, seq INTEGER, crc INTEGER, data BLOB);
CREATE UNIQUE INDEX chunk_by_place ON chunks(band, level, lane, seq);
"""


class StaleCache(Exception):  # noqa: N818 - not an error: the cache is then built again
    """The cache cannot be used."""


def cache_file(run: Path, run_id: str) -> Path:
    """Where the index of this run is: keyed by place and id, so that a copied run has its own."""
    key = hashlib.sha256(f"{run.resolve()}\n{run_id}".encode(errors="replace")).hexdigest()[:32]
    return cache_root() / "index" / f"{key}.sqlite"


def cache_root() -> Path:
    """`$CLEW_CACHE`, or the platform's own place for caches."""
    if given := os.environ.get("CLEW_CACHE"):
        return Path(given)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "clew"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home()) / "clew" / "cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "clew"


def open_cache(file: Path) -> sqlite3.Connection:
    """Open the cache, creating or recreating it if needed; in memory if there is no place for a file."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            os.utime(file)  # mark as used: not every filesystem records access times
        _remove_unused(file.parent)
        return _opened(str(file))
    except StaleCache:
        remove_cache(file)
    except (OSError, sqlite3.Error):
        return _opened(":memory:")
    try:
        return _opened(str(file))
    except (StaleCache, sqlite3.Error):
        return _opened(":memory:")


def remove_cache(file: Path) -> None:
    for name in (file, file.with_name(file.name + "-journal")):
        with contextlib.suppress(OSError):
            name.unlink()


def _opened(name: str) -> sqlite3.Connection:
    db = sqlite3.connect(name, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        # Killing a viewer must not tear the cache (hence a journal). A power cut may: then it is rebuilt.
        db.executescript(
            "PRAGMA page_size=16384; PRAGMA journal_mode=TRUNCATE; PRAGMA synchronous=OFF;"
            "PRAGMA cache_size=-8000"
        )
        with transaction(db):
            if not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                for statement in SCHEMA.split(";"):
                    db.execute(statement)
                db.execute("INSERT INTO info VALUES (?)", (VERSION,))
            if db.execute("SELECT version FROM info").fetchall() != [(VERSION,)]:
                raise StaleCache
    except BaseException as e:
        db.close()
        if isinstance(e, sqlite3.DatabaseError) and not is_busy(e):
            raise StaleCache from e
        raise
    return db


@contextlib.contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """All or nothing, and exclusive: another viewer may be using the same cache."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            db.execute("ROLLBACK")
        raise


def is_busy(error: sqlite3.Error) -> bool:
    text = str(error)
    return isinstance(error, sqlite3.OperationalError) and ("locked" in text or "busy" in text)


def put_chunk(db: sqlite3.Connection, place: tuple[int, int, int, int], blob: bytes) -> None:
    """Store the chunk at (band, level, lane, number)."""
    db.execute("INSERT OR REPLACE INTO chunks VALUES (?,?,?,?,?,?)", (*place, zlib.crc32(blob), blob))


def get_chunks(db: sqlite3.Connection, place: tuple[int, int, int], first: int, last: int) -> list[bytes]:
    """The chunks of (band, level, lane) with these numbers; raises if one is missing or damaged."""
    query = (
        "SELECT seq, crc, data FROM chunks WHERE band=? AND level=? AND lane=? AND seq BETWEEN ? AND ?"
        " ORDER BY seq"
    )
    rows: list[Any] = db.execute(query, (*place, first, last)).fetchall()
    if [row[0] for row in rows] != list(range(first, last + 1)):
        raise StaleCache("chunks are missing")
    if any(not isinstance(data, bytes) or zlib.crc32(data) != crc for _, crc, data in rows):
        raise StaleCache("a chunk is damaged")
    return [row[2] for row in rows]


def _remove_unused(folder: Path) -> None:
    for file in folder.glob("*.sqlite"):
        with contextlib.suppress(OSError):
            if time.time() - file.stat().st_mtime > UNUSED_DAYS * 86400:
                remove_cache(file)
