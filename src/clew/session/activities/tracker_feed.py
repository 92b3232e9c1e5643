"""Tracker feed: passes everything that is recorded on to trackers, which send it elsewhere.

Trackers work on a thread of their own. A slow tracker loses records, which is reported; one that fails is
switched off. Neither delays the training or the log.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.records.extensions import CannotRegister, Extensions, must_be_named, name_of
from clew.records.site import Site
from clew.session.activities.activity import Activity

if TYPE_CHECKING:
    from clew.records.verdict import Verdict
    from clew.session.session import Session
    from clew.store.read.decoder import Event, Fact, RowBlock
    from clew.store.write.row_blocks import Array

MOST_WAITING = 32 << 20  # bytes that may wait for a slow tracker; more is dropped
CLOSE_SECONDS = 4.0  # how long the end of a run waits for trackers


@dataclass(frozen=True)
class TrackedRun:
    """The run that a tracker is created for."""

    id: str
    path: Path
    rank: int
    meta: dict[str, Any]  # the content of run.json: script, arguments, versions


@dataclass(frozen=True)
class TrackedBatch:
    """What was written since the last batch."""

    facts: list[Fact] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    blocks: list[RowBlock] = field(default_factory=list)

    def series(self) -> Iterator[tuple[str, Site, Array, Array]]:
        """Signal, site, steps and values of every row; copies nothing until it is iterated."""
        for block in self.blocks:
            width = len(block.table.signals)
            for s, site in enumerate(block.table.sites):
                for k, signal in enumerate(block.table.signals):
                    yield signal, site, block.steps, block.values[:, s * width + k]


def as_tracker(given: Any) -> Callable[[TrackedRun], Any]:
    """Accept a class or function that creates a tracker for a run."""
    if not callable(given):
        raise CannotRegister(f"a tracker is a class or a function, not {type(given).__name__}")
    made: Callable[[TrackedRun], Any] = given
    return made


TRACKERS: Extensions[Callable[[TrackedRun], Any]] = Extensions(
    "clew.trackers", lambda given, _: as_tracker(given)
)


def register_tracker(given: Any, name: str | None = None) -> None:
    """Use it in every run of this process."""
    TRACKERS.add(must_be_named("a tracker", name or name_of(given)), as_tracker(given))


class TrackerFeed(Activity):
    """Feeds the trackers registered in this process, and the installed ones that were asked for."""

    name = "trackers"

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._wake = threading.Event()
        self._ending = False
        self._verdict: Verdict | None = None
        self._thread: threading.Thread | None = None
        self._trackers: dict[str, Any] = {}
        self._off: set[str] = set()

    def written(self, payload: bytes) -> None:
        """On the log's thread: put it into the queue, or drop it if the queue is full."""
        if not (TRACKERS.registered or self._session.options.track):
            return
        if self._thread is None:
            self._begin()
        if self._size > MOST_WAITING:
            self._session.report_incident("a tracker can't keep up; some records are not sent to it")
            return
        self._waiting.append(payload)
        self._size += len(payload)
        self._wake.set()

    def _begin(self) -> None:
        """Declarations from before a tracker was added are needed to read what comes after."""
        self._waiting.extend(self._session.writer.declarations())
        self._thread = threading.Thread(target=self._run, daemon=True, name="clew-trackers")
        self._thread.start()

    def ended(self) -> None:
        """The log is closed: give the trackers some time to finish."""
        if self._thread is None:
            return
        self._verdict = self._session.verdict
        self._ending = True
        self._wake.set()
        self._thread.join(CLOSE_SECONDS)
        if self._thread.is_alive():
            self._session.report_incident("a tracker did not finish in time")

    # -- on the trackers' thread --

    def _run(self) -> None:
        from clew.store.read.decoder import Decoder

        decoder, ending = Decoder(), False
        while not ending:
            self._wake.wait()
            self._wake.clear()
            ending = self._ending  # read first: then everything that was written is in this batch
            batch = self._batch(decoder)
            for name in self._wanted():
                self._guarded(name, partial(self._hand_over, name, batch))
        for name, tracker in self._trackers.items():
            if name not in self._off and hasattr(tracker, "close"):
                self._guarded(name, partial(tracker.close, self._verdict))

    def _batch(self, decoder: Any) -> TrackedBatch:
        from clew.store.read.decoder import DecodeError, Event, Fact, RowBlock

        batch = TrackedBatch()
        lists = {Fact: batch.facts, Event: batch.events, RowBlock: batch.blocks}
        for _ in range(len(self._waiting)):
            payload = self._waiting.popleft()
            self._size = max(self._size - len(payload), 0)
            try:
                record = decoder.decode(payload)
            except DecodeError:
                continue
            if type(record) in lists:
                lists[type(record)].append(record)  # type: ignore[attr-defined]
        return batch

    def _wanted(self) -> list[str]:
        names = [*TRACKERS.registered, *self._session.options.track]
        return [name for name in dict.fromkeys(names) if name not in self._off]

    def _hand_over(self, name: str, batch: TrackedBatch) -> None:
        if name not in self._trackers:
            self._trackers[name] = self._make(name)
        tracker = self._trackers[name]
        if tracker is None:  # it does not want this run
            self._off.add(name)
        elif batch.facts or batch.events or batch.blocks:
            tracker.write(batch)

    def _make(self, name: str) -> Any:
        session = self._session
        known = TRACKERS.all()
        if name not in known:
            raise CannotRegister(TRACKERS.broken().get(name, "there is no such tracker"))
        return known[name](TrackedRun(session.path.name, session.path, session.rank, session.meta.to_json()))

    def _guarded(self, name: str, action: Callable[[], None]) -> None:
        try:
            action()
        except Exception as error:  # noqa: BLE001 - third-party code
            self._off.add(name)
            self._session.guard.note(f"tracker {name}", error)
