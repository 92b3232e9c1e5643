"""Live updates as server-sent events.

The folder is scanned once a second for all listeners together, and not at all without listeners.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable

from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from clew.store.read.run_errors import RunError
from clew.web.answer_shapes import GoneEvent, RunEvent, RunRow, RunsEvent
from clew.web.answers.run_rows import brief
from clew.web.responses import dumps
from clew.web.runs.run_library import RunGone

EVERY = 1.0  # seconds between two scans
SHARE = 0.05  # share of the time that scanning may take: a folder of thousands is scanned less often
AWAKE = 15.0  # seconds after which a comment keeps proxies from closing the connection

Scan = Callable[[], dict[str, RunRow]]


class Ticker:
    """Scans all runs and notifies the listeners."""

    def __init__(self, scan: Scan) -> None:
        self._scan = scan
        self._listeners = 0
        self._task: asyncio.Task[None] | None = None
        self._rows: dict[str, RunRow] = {}
        self._turn = asyncio.Event()
        self.stopping = asyncio.Event()

    async def changes(self) -> AsyncIterator[dict[str, RunRow]]:
        """The rows of all runs: now, and after each scan."""
        self._listeners += 1
        try:
            if self._task is None or self._task.done():
                self._rows = await run_in_threadpool(self._scan)
                self._task = asyncio.create_task(self._tick())
            while not self.stopping.is_set():
                turn = self._turn
                yield self._rows
                await self._either(turn)
        finally:
            self._listeners -= 1

    async def _either(self, turn: asyncio.Event) -> None:
        waits = [asyncio.ensure_future(event.wait()) for event in (turn, self.stopping)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    async def _tick(self) -> None:
        while self._listeners and not self.stopping.is_set():
            began = time.monotonic()
            with contextlib.suppress(OSError):  # a network folder that is briefly unavailable
                self._rows = await run_in_threadpool(self._scan)
            turn, self._turn = self._turn, asyncio.Event()
            turn.set()
            await asyncio.sleep(max(EVERY, (time.monotonic() - began) / SHARE))


def stream(lines: AsyncIterator[str]) -> StreamingResponse:
    headers = {"X-Accel-Buffering": "no", "Cache-Control": "no-store"}
    return StreamingResponse(lines, media_type="text/event-stream", headers=headers)


def event(name: str, data: RunsEvent | RunEvent | GoneEvent) -> str:
    return f"event: {name}\ndata: {dumps(data)}\n\n"


async def all_runs(ticker: Ticker) -> AsyncIterator[str]:
    """Rows that changed, and ids that are gone."""
    sent: dict[str, int] = {}
    spoke = time.monotonic()
    async for rows in ticker.changes():
        fresh = [brief(row) for name, row in rows.items() if sent.get(name) != row["version"]]
        gone = sorted(sent.keys() - rows.keys())
        if fresh or gone or not sent:
            yield event("runs", {"runs": fresh, "gone": gone})
            spoke = time.monotonic()
        elif time.monotonic() - spoke > AWAKE:
            yield ": still here\n\n"
            spoke = time.monotonic()
        sent = {name: row["version"] for name, row in rows.items()}


async def one_run(ticker: Ticker, name: str, now: Callable[[], RunEvent]) -> AsyncIterator[str]:
    """The state of one run, whenever it changes; `gone` if its folder disappears."""
    sent: RunEvent | None = None
    spoke = time.monotonic()
    async for _ in ticker.changes():
        try:
            state = await run_in_threadpool(now)
        except RunGone:
            yield event("gone", {"id": name})
            return
        except RunError:
            return
        if state != sent:
            yield event("run", state)
            sent, spoke = state, time.monotonic()
        elif time.monotonic() - spoke > AWAKE:
            yield ": still here\n\n"
            spoke = time.monotonic()
