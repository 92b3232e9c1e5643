"""Recorded images: validates the pixels, resizes them and encodes them as PNG."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

Pixel = tuple[int, int, int]
Image = list[list[Pixel]]
LARGEST = 256  # most rows and columns read from a recording, which may not be trusted


def image_of(data: Any) -> Image | None:
    """Rows of 0–255 or of [r, g, b]; None for anything that is not an image."""
    if not isinstance(data, (list, tuple)) or not data:
        return None
    rows = [
        [_pixel(value) for value in row[:LARGEST]] for row in data[:LARGEST] if isinstance(row, (list, tuple))
    ]
    width = min((len(row) for row in rows), default=0)
    return [row[:width] for row in rows] if width else None


def _pixel(value: Any) -> Pixel:
    parts = list(value)[:3] if isinstance(value, (list, tuple)) else [value]
    levels = [_level(part) for part in parts] or [0]
    return (levels[0], levels[1], levels[2]) if len(levels) == 3 else (levels[0], levels[0], levels[0])


def _level(value: Any) -> int:
    usable = isinstance(value, (int, float)) and value == value
    return int(min(max(value, 0), 255)) if usable else 0


def scaled(image: Image, width: int, height: int) -> Image:
    """Each new pixel is the mean of what it covers, or the nearest one where it covers less than one."""
    rows = _spans(len(image), height)
    columns = _spans(len(image[0]), width)
    return [[_mean(image, row, column) for column in columns] for row in rows]


def _spans(there: int, wanted: int) -> list[range]:
    starts = [n * there // wanted for n in range(wanted + 1)]
    return [range(a, max(b, a + 1)) for a, b in pairwise(starts)]


def _mean(image: Image, rows: range, columns: range) -> Pixel:
    cells = [image[r][c] for r in rows for c in columns]
    r, g, b = (sum(cell[k] for cell in cells) // len(cells) for k in range(3))
    return r, g, b


def fitted(image: Image, widest: int, highest: int, least: int = 16) -> Image:
    """At most this large; a tiny image is enlarged by an integer factor."""
    height, width = len(image), len(image[0])
    largest = max(width / widest, height / highest)
    if largest > 1:
        return scaled(image, max(round(width / largest), 1), max(round(height / largest), 1))
    factor = max(min(least // max(width, height), widest // width, highest // height), 1)
    return scaled(image, width * factor, height * factor)


def grey(pixel: Pixel) -> int:
    """Perceived brightness, 0–255."""
    r, g, b = pixel
    return (299 * r + 587 * g + 114 * b) // 1000


def png(image: Image) -> bytes:
    """An 8-bit RGB file."""
    height, width = len(image), len(image[0])
    raw = b"".join(b"\0" + bytes(level for pixel in row for level in pixel) for row in image)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts: Sequence[tuple[bytes, bytes]] = (
        (b"IHDR", header),
        (b"IDAT", zlib.compress(raw, 9)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in parts)


def data_uri(image: Image, largest: int) -> str:
    """For the `src` of an `<img>`: at most `largest` pixels wide and high."""
    encoded = base64.b64encode(png(fitted(image, largest, largest, 48))).decode("ascii")
    return f"data:image/png;base64,{encoded}"


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
