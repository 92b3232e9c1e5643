"""File format of a log segment: a magic word, then frames of length, CRC32 and payload.

A payload is either `J` and a JSON object, or `B` and a block of rows (see `row_blocks`). This module does not
import numpy: `clew run` must start fast.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any

from clew.records.codec import json_float

MAGIC = b"CLEWSEG1"
HEADER = struct.Struct("<II")  # payload length, CRC32 of the payload
MAX_FRAME = 256 << 20  # no writer creates larger ones, so a larger length is damage
SEGMENT_BYTES = 64 << 20  # small enough to copy and to read whole, large enough to be few
DTYPES = {"f8": "<f8", "f4": "<f4", "u1": "|u1"}

MAX_DEPTH = 12  # of nesting in facts; ours reach 4, and a cycle has to end somewhere
MAX_ITEMS = 100_000  # of an array inside a fact: a fact is not the place for a tensor
MAX_TEXT = 10_000  # characters of an unusual object's description


def frame(payload: bytes) -> bytes:
    """The payload as it is in the file."""
    return HEADER.pack(len(payload), zlib.crc32(payload)) + payload


def is_sound(length: int) -> bool:
    """Whether a writer can have written this length.

    Zero is not valid: after a power cut a file may end in zeros, and the CRC32 of nothing is 0.
    """
    return 0 < length <= MAX_FRAME


def encode_json(record: Mapping[str, Any]) -> bytes:
    """A JSON payload; `t` comes first, so that a tail can be searched for a kind of record."""
    return b"J" + json.dumps(plain(record), separators=(",", ":"), allow_nan=False).encode("ascii")


def plain(value: Any, depth: int = 0) -> Any:
    """Any value that a probe put into a fact, as strict JSON; never raises."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)  # the text itself, also for an enum
    if isinstance(value, float):
        return json_float(float(value))
    if isinstance(value, int):
        return int(value) if -(2**63) <= value < 2**64 else hex(value)
    if depth >= MAX_DEPTH:
        return "…"
    if isinstance(value, Mapping):
        return {_text(k): plain(v, depth + 1) for k, v in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted((plain(v, depth + 1) for v in value), key=repr)
    if isinstance(value, (list, tuple)):
        return [plain(v, depth + 1) for v in value]
    return _odd(value, depth)


def _odd(value: Any, depth: int) -> Any:
    """Numpy scalars and arrays by their values, anything else by its text."""
    if isinstance(value, PurePath):
        return str(value)
    try:
        if type(value).__module__ == "numpy" and value.size <= MAX_ITEMS:
            return plain(value.tolist(), depth + 1)
    except Exception:  # noqa: BLE001 - an object that only looks like an array
        pass
    return _text(value)


def _text(value: Any) -> str:
    try:
        return str(value)[:MAX_TEXT]
    except Exception:  # noqa: BLE001 - a broken __str__ of the user's must not stop the log
        return f"<{type(value).__name__}>"


def joined(payloads: Iterable[bytes]) -> bytes:
    """Frames one after another, ready for one write()."""
    return b"".join(map(frame, payloads))


def number(value: Any) -> float | None:
    """A finite number from untrusted JSON, or None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < 1e300:
        return None
    return float(value)
