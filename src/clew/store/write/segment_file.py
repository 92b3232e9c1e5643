"""Segment file of the log: plain write(), rollover to the next file, and the heartbeat.

Only the writer's thread uses it. Its errors are OSErrors, which the writer reports.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable
from pathlib import Path

from clew.store.write.frames import MAGIC, SEGMENT_BYTES, joined

HEARTBEAT_EVERY = 2.0  # seconds; after a minute without one, readers assume that the writer is dead


class SegmentFile:
    """Appends frames to `folder`, and starts a new file when one is full.

    `preamble` returns the payloads that every segment starts with: who writes it, and the declarations so
    far, so that it can be read on its own.
    """

    def __init__(self, folder: Path, preamble: Callable[[], list[bytes]], limit: int = SEGMENT_BYTES) -> None:
        self._folder = folder
        self._preamble = preamble
        self._limit = limit
        self._fd = -1
        self._path = folder
        self._size = 0  # bytes of whole frames; anything beyond is a write that was cut short
        self._number = 0
        self._beat = 0.0

    @property
    def is_open(self) -> bool:
        return self._fd >= 0

    def write(self, payloads: list[bytes]) -> None:
        """Append whole frames with one write(), or raise and leave only whole ones behind."""
        if self._fd < 0 or self._size >= self._limit:
            self._roll()
        self._append(joined(payloads))

    def heartbeat(self) -> None:
        """Touch the file at intervals, so that readers elsewhere see that the writer is alive."""
        now = time.monotonic()
        if self._fd < 0 or now - self._beat < HEARTBEAT_EVERY:
            return
        self._beat = now
        try:
            os.utime(self._path)
        except FileNotFoundError:
            raise
        except OSError:
            pass  # a filesystem that does not let us set times; writing shows whether we are alive

    def close(self) -> None:
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)

    def _roll(self) -> None:
        """Open the next free number: a restarted job continues in the same folder."""
        self.close()
        self._folder.mkdir(parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
        while self._fd < 0:
            self._number += 1
            self._path = self._folder / f"events-{self._number:06d}.seg"
            try:
                self._fd = _apart(os.open(self._path, flags | getattr(os, "O_BINARY", 0), 0o644))
            except FileExistsError:
                continue
        self._size = 0
        try:
            self._append(MAGIC + joined(self._preamble()))
        except OSError:
            self.close()  # an empty file is harmless; frames without the magic word are not
            raise

    def _append(self, data: bytes) -> None:
        state = os.fstat(self._fd)
        if state.st_nlink == 0:  # writing would succeed, into a file that can no longer be opened
            raise FileNotFoundError(errno.ENOENT, "the run folder was deleted")
        if state.st_size != self._size:
            os.ftruncate(self._fd, self._size)  # left by a write that did not complete
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._fd, view) :]
        except OSError:
            os.ftruncate(self._fd, self._size)
            raise
        self._size += len(data)


def _apart(fd: int) -> int:
    """Not one of the first three: if a program has no stderr, its warnings would go into the log."""
    if fd > 2 or os.name != "posix":
        return fd
    import fcntl

    try:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
    finally:
        os.close(fd)
