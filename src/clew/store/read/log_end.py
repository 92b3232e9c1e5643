"""The end of a log, read backwards: how the run ended and how far it came.

The last records do not depend on those before them, so this works even if the log is damaged in the middle.
"""

from __future__ import annotations

import os
import zlib
from pathlib import Path
from typing import Any

from clew.store.read.decoder import DecodeError, Decoder, Mark
from clew.store.read.segment_tail import open_regular
from clew.store.write.frames import HEADER, is_sound

END_BYTES = 4096  # the end record is far smaller, even with a long reason for what was lost


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
