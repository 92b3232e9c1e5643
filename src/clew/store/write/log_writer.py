"""Log writer: queues records on the training thread, nearly for free, and writes them on its own thread.

Everything is put into a queue; a daemon thread encodes and writes it a few times per second. No failure in
here reaches the training: it is reported to `on_failure` in one line, and what cannot be recorded is dropped.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.records.site import Site
from clew.store.write.frames import SEGMENT_BYTES, encode_json
from clew.store.write.payloads import Encoder, Names, QueuedRows
from clew.store.write.process_identity import identity
from clew.store.write.segment_file import SegmentFile

if TYPE_CHECKING:
    from clew.store.write.row_blocks import Array

FLUSH_SECONDS = 0.5  # between two writes, unless one is requested: each costs a millisecond of this thread
QUEUE_BYTES = 64 << 20  # most bytes that may wait to be written; more is dropped, so memory stays bounded
WAKE_BYTES = 4 << 20  # write early when this much waits: limits one flush to some milliseconds
ROW_BYTES = 336  # least size of a queued row; so the queue contains at most 200,000
RECORD_BYTES = 2048  # estimate for a fact or event, of which there are few
CLOSE_SECONDS = 4.0  # how long the end of a run may wait for a hanging disk
RESTARTS = 3  # a writer thread that dies is replaced; one that keeps dying is not

_writers: weakref.WeakSet[LogWriter] = weakref.WeakSet()


class LogWriter:
    """Appends one rank's records to its log. Values passed in must not be changed afterwards."""

    def __init__(
        self,
        rank_dir: Path,
        *,
        on_failure: Callable[[str], None],
        tap: Callable[[bytes], None] | None = None,
        after_flush: Callable[[], None] | None = None,
        flush_interval: float = FLUSH_SECONDS,
        segment_bytes: int = SEGMENT_BYTES,
    ) -> None:
        self._dir = rank_dir
        self._on_failure = on_failure
        self._tap = tap
        self._after_flush = after_flush
        self._interval = flush_interval
        self._reset()
        self._names = Names(lambda record: self._put(record, 0))
        self._encoder = Encoder(self._names.tables)
        self._declared: list[bytes] = []
        self._file = SegmentFile(rank_dir, self._preamble, segment_bytes)
        self._broken = ""  # why nothing is written any more
        self._reported: set[str] = set()
        self._dropped = 0
        self._starts = 0
        _writers.add(self)
        self._start()

    def _reset(self) -> None:
        self._queue: deque[Any] = deque()
        self._load = 0  # bytes waiting, roughly: several threads add without a lock
        self._lock = threading.RLock()
        self._wake = threading.Event()
        self._closed = False
        self._stopping = False
        self._abandoned = False

    # Called on the training thread

    def site(self, site: Site) -> int:
        """The number of a site; equal sites have the same number."""
        return self._names.site(site)

    def table(self, signals: Sequence[str], sites: Sequence[int], dtype: str = "f8") -> int:
        """The number of a table with the columns sites × signals, site-major."""
        return self._names.table(signals, sites, dtype)

    def row(self, table: int, step: int, values: Sequence[float] | Array) -> None:
        """Write one row of a table."""
        self._put_rows(table, (step,), (values,))

    def rows(self, table: int, steps: Array, values: Array) -> None:
        """Write rows of a table, one for each step."""
        self._put_rows(table, steps, values)

    def _put_rows(self, table: int, steps: Any, values: Any) -> None:
        """Only appends to the queue."""
        try:
            weight = len(steps) * (ROW_BYTES + 8 * self._names.tables[table].count)
            self._put((table, steps, values), weight, len(steps))
        except KeyError:
            self._tell("table", f"a row for table {table}, which was never declared, is lost")

    def fact(self, kind: str, step: int, data: dict[str, Any]) -> None:
        """Record something that is known once."""
        self._put({"t": "fact", "kind": kind, "step": step, "data": data}, RECORD_BYTES)

    def event(self, kind: str, step: int, data: dict[str, Any]) -> None:
        """Record something that happened now."""
        record = {"t": "event", "kind": kind, "step": step, "wall": time.time(), "data": data}
        self._put(record, RECORD_BYTES)

    def declarations(self) -> list[bytes]:
        """The sites and tables declared so far: needed to follow the log from here on."""
        return list(self._declared)

    def nudge(self) -> None:
        """Write what is queued now rather than in a moment; does not wait for it."""
        self._wake.set()

    def flush(self, timeout: float = 5.0) -> bool:
        """Wait until everything queued so far is written and tapped; False if it is not."""
        if self._closed or threading.current_thread() is self._thread or not self._ensure_alive():
            return False
        done = threading.Event()
        self._queue.append(done)
        self._wake.set()
        return done.wait(timeout) and not self._broken

    def close(self, state: str, exit_code: int | None = None) -> None:
        """Write what is queued and the end of the run. Does nothing the second time."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        own = threading.current_thread() is self._thread
        alive = own or self._ensure_alive()  # checked first: once told to stop, it may have ended normally
        self._queue.append(_End(state, exit_code))
        self._stopping = True
        self._wake.set()
        if own:
            return
        if alive:
            self._thread.join(CLOSE_SECONDS)
            if self._thread.is_alive():
                self._tell(
                    "hang", f"the log in {self._dir} did not finish in time; the last records may be lost"
                )
        _writers.discard(self)

    def abandon(self) -> None:
        """For a forked child: forget everything, and never touch the parent's file."""
        self._reset()
        self._names.lock = threading.RLock()  # another thread may have locked it
        self._closed = self._abandoned = True
        self._tap = self._after_flush = None
        self._file.close()

    def _put(self, item: Any, weight: int, records: int = 1) -> None:
        """Queue an item. Declarations have no weight: rows that were accepted must stay readable."""
        if self._closed:
            return
        if weight and self._load > QUEUE_BYTES:
            self._drop(records)
            return
        self._queue.append(item)
        self._load += weight
        if self._load > WAKE_BYTES and not self._wake.is_set():
            self._wake.set()
            self._ensure_alive()

    def _drop(self, records: int) -> None:
        self._dropped += records
        self._ensure_alive()
        self._tell("slow", f"the log in {self._dir} can't keep up; records are being dropped")

    # The writer's thread

    def _start(self) -> None:
        self._starts += 1
        self._thread = threading.Thread(target=self._run, name="clew-log", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as e:  # no more threads, or the interpreter is shutting down
            self._tell("thread", f"the log's thread can't be started ({e}); nothing is recorded")

    def _ensure_alive(self) -> bool:
        """Replace a thread that was killed, so that what waits in the queue is not lost."""
        with self._lock:
            if self._thread.is_alive():
                return True
            if self._abandoned or self._starts > RESTARTS:
                return False
            self._tell("died", "the log's thread died; the record it was writing is lost")
            self._start()
            return self._thread.is_alive()

    def _run(self) -> None:
        """Catch whatever kills the thread: the program's `threading.excepthook` is not for our failures."""
        try:
            self._loop()
        except BaseException:  # noqa: BLE001 - `_ensure_alive` notices and reports its death
            return

    def _loop(self) -> None:
        self._write([])  # at once, so that a folder that cannot be written is noticed at the start
        stopping = False
        while not stopping and not self._abandoned:
            self._wake.wait(self._interval)
            self._wake.clear()
            stopping = self._stopping  # read first: then everything that close() queued is in this drain
            try:
                self._drain()
            except Exception as e:  # noqa: BLE001 - the thread must outlive any failure
                self._tell("batch", f"some records could not be written ({type(e).__name__}: {e})")
        self._file.close()

    def _drain(self) -> None:
        items = [self._queue.popleft() for _ in range(len(self._queue))]
        self._load = 0
        waiting = [item for item in items if isinstance(item, threading.Event)]
        try:
            batch = self._encoder.encode(i for i in items if type(i) in (tuple, dict))
            self._record(batch)
            for end in (i for i in items if isinstance(i, _End)):
                self._finish(end)
        finally:
            for event in waiting:
                event.set()
        if batch.payloads() and not self._stopping:  # at the end nothing should wait for a live view
            self._call_after_flush()

    def _record(self, batch: QueuedRows) -> None:
        for error in batch.errors:
            self._tell("odd", error)
        self._write(batch.payloads())
        self._declared += batch.declarations
        self._feed_tap(batch.payloads())

    def _write(self, payloads: list[bytes]) -> None:
        if self._broken:
            return
        try:
            if payloads or not self._file.is_open:
                self._file.write(payloads)
            self._file.heartbeat()
        except OSError as e:
            self._broken = f"can't write the log in {self._dir}: {e.strerror or e}"
            self._tell("write", self._broken + "; recording stops here")

    def _finish(self, end: _End) -> None:
        """Write the last record, even if the disk was full before: it says how far the run came."""
        missing = self._broken or (f"{self._dropped} records were dropped" if self._dropped else "")
        record = {"t": "end", "state": end.state, "exit_code": end.exit_code, **self._encoder.progress()}
        payload = encode_json({**record, "lost": missing} if missing else record)
        with contextlib.suppress(OSError):
            self._file.write([payload])
        self._feed_tap([payload])

    def _preamble(self) -> list[bytes]:
        """What every segment starts with, so that it can be read on its own."""
        return [encode_json({"t": "begin", **identity()}), *self._declared]

    def _feed_tap(self, payloads: list[bytes]) -> None:
        try:
            for payload in payloads:
                if self._tap:
                    self._tap(payload)
        except Exception as e:  # noqa: BLE001 - the log matters more than its listeners
            self._tap = None
            self._tell(
                "tap", f"following the run live failed ({type(e).__name__}: {e}); it is still recorded"
            )

    def _call_after_flush(self) -> None:
        try:
            if self._after_flush:
                self._after_flush()
        except Exception as e:  # noqa: BLE001 - as above
            self._after_flush = None
            self._tell(
                "live", f"checking the run live failed ({type(e).__name__}: {e}); it is still recorded"
            )

    def _tell(self, kind: str, line: str) -> None:
        """Report each kind of failure once; a failure of the callback itself is ignored."""
        if kind not in self._reported:
            self._reported.add(kind)
            with contextlib.suppress(Exception):
                self._on_failure(line)


@dataclass(frozen=True)
class _End:
    state: str
    exit_code: int | None


def _abandon_all() -> None:
    for writer in list(_writers):
        writer.abandon()


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=_abandon_all)
