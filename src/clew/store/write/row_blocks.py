"""Blocks of rows: `B`, table and row count, then steps and values as raw little-endian arrays."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from clew.store.write.frames import DTYPES, MAX_FRAME

Array = npt.NDArray[Any]
BLOCK = struct.Struct("<cII")  # kind, table, rows


Part = tuple[Any, Any]  # steps, and the rows of each: one by one, or as a matrix


def encode_block(table: int, parts: Sequence[Part], dtype: str, columns: int) -> bytes:
    """Rows of one table as a payload; raises ValueError if a row does not fit the table."""
    steps = [np.asarray(part[0], "<i8") for part in parts]
    values = [_matrix(part[1], dtype, columns) for part in parts]
    for numbers, matrix in zip(steps, values, strict=True):
        if matrix.shape != (len(numbers), columns):
            raise ValueError(f"rows of shape {matrix.shape[1:]} for a table of {columns} columns")
    head = BLOCK.pack(b"B", table, sum(map(len, steps)))
    return b"".join([head, *(array.tobytes() for array in steps), *(array.tobytes() for array in values)])


def _matrix(rows: Sequence[Any] | Array, dtype: str, columns: int) -> Array:
    values = _of_tuples(rows, columns) if dtype == "f8" and not isinstance(rows, np.ndarray) else None
    return as_matrix(rows, dtype) if values is None else values


def _of_tuples(rows: Sequence[Any], columns: int) -> Array | None:
    """Every-step rows, the most common kind: three times as fast as letting numpy infer the type."""
    if not all(type(row) is tuple and len(row) == columns for row in rows):
        return None
    return np.fromiter(chain.from_iterable(rows), "<f8", len(rows) * columns).reshape(-1, columns)


def as_matrix(rows: Sequence[Any] | Array, dtype: str) -> Array:
    """One array of the table's dtype. Values that do not fit in a byte are clipped, never an error."""
    matrix = np.asarray(rows)
    if matrix.dtype.str == DTYPES[dtype]:
        return matrix
    with np.errstate(all="ignore"):
        matrix = matrix.astype("<f8", copy=False)
        if dtype == "u1":
            matrix = np.clip(np.nan_to_num(matrix), 0, 255)
        return matrix.astype(DTYPES[dtype], copy=False)


def decode_block(payload: bytes, dtype: str, columns: int) -> tuple[Array, Array]:
    """Steps and values (rows × columns), as views of the payload."""
    _, _, rows = BLOCK.unpack_from(payload)
    kind = np.dtype(DTYPES[dtype])
    if len(payload) != BLOCK.size + rows * (8 + columns * kind.itemsize):
        raise ValueError("a block whose size does not fit its table")
    steps = np.frombuffer(payload, "<i8", rows, BLOCK.size)
    values = np.frombuffer(payload, kind, rows * columns, BLOCK.size + rows * 8)
    return steps, values.reshape(rows, columns)


def block_table(payload: bytes) -> int:
    """The table that a block belongs to."""
    return int(BLOCK.unpack_from(payload)[1])


def block_steps(payload: bytes) -> Array:
    """The steps of a block, readable without knowing its table."""
    rows = min(BLOCK.unpack_from(payload)[2], (len(payload) - BLOCK.size) // 8)
    return np.frombuffer(payload, "<i8", rows, BLOCK.size)


def fits(columns: int, dtype: str) -> bool:
    """Whether a single row of such a table can be written at all."""
    return 0 < columns * np.dtype(DTYPES[dtype]).itemsize < MAX_FRAME
