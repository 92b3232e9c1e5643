"""TensorBoard's event files, written a column at a time with numpy.

TensorBoard's own writer takes a quarter of an hour for ten million points. All records of one tag have
the same length here (the step is a padded varint, which protobuf allows), so their checksums are
computed side by side. TensorBoard reads them like its own: the benchmark checks that it does.
"""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.ui.making import Table

Bytes = npt.NDArray[np.uint8]
POLYNOMIAL = 0x82F63B78  # CRC32C, reversed
PART = 200_000  # records put together at once


def write_events(folder: Path, made: list[Table]) -> None:
    """One event file with every series of the tables as a scalar."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "events.out.tfevents.1700000000.benchmark.0.0", "wb") as file:
        head = b"\x09" + struct.pack("<d", 1.7e9) + b"\x1a\x0dbrain.Event:2"
        file.write(framed(np.frombuffer(head, np.uint8)[None, :]).tobytes())
        for table in made:
            for column in range(table.values.shape[1]):
                site, signal = divmod(column, len(table.signals))
                where = table.sites[site].module
                tag = f"{table.signals[signal].replace('.', '/')}{'/' + where if where else ''}"
                for at in range(0, len(table.steps), PART):
                    part = slice(at, at + PART)
                    file.write(framed(records(tag, table.steps[part], table.values[part, column])).tobytes())


def records(tag: str, steps: npt.NDArray[np.int64], values: npt.NDArray[np.float64]) -> Bytes:
    """An `Event` with one scalar per row, as protobuf."""
    name = tag.encode()
    value = b"\x0a" + bytes([len(name)]) + name + b"\x15" + bytes(4)
    summary = b"\x0a" + bytes([len(value)]) + value
    event = b"\x09" + bytes(8) + b"\x10" + bytes(5) + b"\x2a" + bytes([len(summary)]) + summary
    rows = np.tile(np.frombuffer(event, np.uint8), (len(steps), 1))
    rows[:, 1:9] = (1.7e9 + steps.astype("<f8")).view(np.uint8).reshape(-1, 8)
    for digit in range(5):
        more = 0x80 if digit < 4 else 0
        rows[:, 10 + digit] = ((steps >> (7 * digit)) & 0x7F) | more
    rows[:, -4:] = np.ascontiguousarray(values, "<f4").view(np.uint8).reshape(-1, 4)
    return rows


def framed(rows: Bytes) -> Bytes:
    """TFRecord: length, its checksum, the record, its checksum."""
    count, length = rows.shape
    head = np.tile(np.frombuffer(struct.pack("<Q", length), np.uint8), (count, 1))
    return np.hstack([head, masked_checksum(head), rows, masked_checksum(rows)])


def masked_checksum(rows: Bytes) -> Bytes:
    """CRC32C of every row at once, masked as TensorFlow does."""
    crc = np.full(len(rows), 0xFFFFFFFF, np.uint32)
    for column in rows.T:
        crc = TABLE[(crc ^ column) & 0xFF] ^ (crc >> np.uint32(8))
    crc = ~crc
    masked = ((crc >> np.uint32(15)) | (crc << np.uint32(17))) + np.uint32(0xA282EAD8)
    masks: Bytes = masked.astype("<u4").view(np.uint8).reshape(-1, 4)
    return masks


def _table() -> npt.NDArray[np.uint32]:
    crc = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        crc = np.where(crc & 1, (crc >> np.uint32(1)) ^ np.uint32(POLYNOMIAL), crc >> np.uint32(1))
    return crc.astype(np.uint32)


TABLE = _table()
