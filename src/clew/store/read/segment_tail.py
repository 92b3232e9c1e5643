"""Reads the log segments of one rank: forwards as they grow, and backwards from the end.

A position is a segment and an offset: only new bytes are read. Reading stops at the first frame that is not
whole. A frame that is cut short may still be on its way (or its writer was killed); one with a wrong CRC is
damage. The next segment is read in any case, because it repeats what it needs from the earlier ones.

How the run ended and how far it came is in the last records. They do not depend on those before them, so they
can be read even if the log is damaged in the middle.
"""

from __future__ import annotations

import os
import re
import stat
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from clew.store.read.decoder import DecodeError, Decoder, Mark
from clew.store.write.frames import HEADER, MAGIC, is_sound

RANK = re.compile(r"rank(\d{5,9})")
SEGMENT = re.compile(r"events-(\d{6,9})\.seg")
END_BYTES = 4096  # the end record is far smaller, even with a long reason for what was lost


@dataclass(frozen=True)
class Gap:
    """Bytes of a segment that could not be read."""

    path: Path
    offset: int
    size: int
    reason: str
    cut: bool = False  # only the last frame is unfinished: harmless while a process is writing

    def __str__(self) -> str:
        where = f"{self.path.parent.name}/{self.path.name}"
        return f"{where}: {self.reason}; {self.size} bytes from byte {self.offset} can't be read"


def rank_folders(run: Path) -> dict[int, Path]:
    """The folders of the ranks, by number; a folder that cannot be listed has none."""
    return _numbered(run, RANK)


def segment_files(folder: Path) -> list[Path]:
    """The segments of a rank, oldest first."""
    return list(_numbered(folder, SEGMENT).values())


def _numbered(folder: Path, pattern: re.Pattern[str]) -> dict[int, Path]:
    try:
        names = os.listdir(folder)
    except OSError:
        return {}
    matches = ((pattern.fullmatch(name), name) for name in names)
    return {n: folder / name for n, name in sorted((int(m[1]), name) for m, name in matches if m)}


class Tail:
    """Reads the frames of one segment from `offset` on, each once."""

    def __init__(self, path: Path, offset: int = 0) -> None:
        self.path = path
        self.offset = offset
        self.gap: Gap | None = None

    def read(self, feed: Callable[[bytes], None]) -> None:
        """Feed every new whole payload; `gap` says what stopped the reading, if anything did."""
        self.gap = None
        try:
            with open_regular(self.path) as file:
                self._frames(file, os.fstat(file.fileno()).st_size, feed)
        except OSError as e:
            self.gap = self._stopped(_size(self.path), e.strerror or "can't be opened")

    def _frames(self, file: BinaryIO, size: int, feed: Callable[[bytes], None]) -> None:
        if self.offset == 0 and not self._starts_well(file, size):
            return
        if size < self.offset:
            self.gap = self._stopped(self.offset, "the file became shorter while it was read")
            return
        file.seek(self.offset)
        while self.offset < size and (payload := self._frame(file, size)) is not None:
            self.offset += HEADER.size + len(payload)
            feed(payload)

    def _starts_well(self, file: BinaryIO, size: int) -> bool:
        word = file.read(len(MAGIC))
        if word == MAGIC:
            self.offset = len(MAGIC)
            return True
        if MAGIC.startswith(word):
            self.gap = self._stopped(size, "cut short at its start", cut=True) if word else None
        else:
            self.gap = self._stopped(size, "not a segment that this Clew can read")
        return False

    def _frame(self, file: BinaryIO, size: int) -> bytes | None:
        left = size - self.offset - HEADER.size
        if left < 0:
            self.gap = self._stopped(size, "the last record is cut short", cut=True)
            return None
        length, crc = HEADER.unpack(file.read(HEADER.size))
        if not is_sound(length):
            self.gap = self._stopped(size, "damaged (impossible record length)")
        elif length > left:
            self.gap = self._stopped(size, "the last record is cut short", cut=True)
        elif zlib.crc32(payload := file.read(length)) != crc:
            self.gap = self._stopped(size, "damaged (wrong checksum)")
        else:
            return payload
        return None

    def _stopped(self, size: int, reason: str, *, cut: bool = False) -> Gap:
        return Gap(self.path, self.offset, max(size - self.offset, 0), reason, cut)


class RankTail:
    """Follows all segments of one rank, feeding payloads in order."""

    def __init__(self, folder: Path, feed: Callable[[bytes], None]) -> None:
        self.folder = folder
        self._feed = feed
        self._tails: list[Tail] = []

    def refresh(self) -> None:
        """Read what is new. A finished segment is not read again unless it had a gap."""
        known = {tail.path for tail in self._tails}
        self._tails += [Tail(p) for p in segment_files(self.folder) if p not in known]
        for tail in self._tails:
            if tail is self._tails[-1] or tail.gap or tail.offset < _size(tail.path):
                tail.read(self._feed)

    def gaps(self, *, finished: bool) -> list[Gap]:
        """What cannot be read; an unfinished last frame counts only once the writer has stopped."""
        found = [(tail.gap, tail is self._tails[-1]) for tail in self._tails if tail.gap]
        return [gap for gap, last in found if finished or not (gap.cut and last)]

    def heartbeat(self) -> float | None:
        """When the newest segment was last touched."""
        try:
            return self._tails[-1].path.stat().st_mtime if self._tails else None
        except OSError:
            return None

    @property
    def started(self) -> bool:
        return any(tail.offset for tail in self._tails)


# -- the end --


def last_end(segments: list[Path]) -> dict[str, Any] | None:
    """The end record, if it is the last record in the log; segments are given oldest first."""
    if not segments:
        return None
    end = tail_of(segments[-1], END_BYTES)
    at = end.rfind(b'J{"t":"end"') - HEADER.size
    payload = frame_at(end, at)
    whole = payload is not None and at + HEADER.size + len(payload) == len(end)
    return (mark_in(payload) or None) if payload and whole else None


def frame_at(data: bytes, at: int) -> bytes | None:
    """The payload of the frame that begins there, if there is one."""
    if at < 0 or at + HEADER.size > len(data):
        return None
    length, crc = HEADER.unpack_from(data, at)
    payload = data[at + HEADER.size : at + HEADER.size + length] if is_sound(length) else b""
    return payload if payload and len(payload) == length and zlib.crc32(payload) == crc else None


def mark_in(payload: bytes) -> dict[str, Any]:
    """The content of a `begin`, `mark` or `end` record; empty for any other."""
    try:
        record = Decoder().decode(payload)
    except DecodeError:
        return {}
    return record.data if isinstance(record, Mark) else {}


def tail_of(path: Path, size: int) -> bytes:
    with open_regular(path) as file:
        file.seek(max(os.fstat(file.fileno()).st_size - size, 0))
        return file.read(size)


def step_in(record: dict[str, Any]) -> int:
    """The last step at that time; -1 if there was none."""
    step = record.get("step")
    return step if isinstance(step, int) else -1


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file only: a pipe in place of a segment would block forever."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise OSError(0, "not a file")
    return open(path, "rb")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
