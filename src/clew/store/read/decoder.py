"""Decodes payloads of the log into records, one payload at a time.

The bytes may come from anywhere, so everything in them is checked: what cannot be understood raises
`DecodeError`, and no other exception.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from struct import error as struct_error
from typing import Any

from clew.records.site import Site
from clew.store.write.frames import DTYPES
from clew.store.write.row_blocks import Array, block_table, decode_block, fits

INT64 = range(-(2**63), 2**63)


class DecodeError(ValueError):
    """A payload that passed its CRC but makes no sense."""


@dataclass(frozen=True)
class Fact:
    """Something recorded once; `step` is when it became known."""

    kind: str
    step: int
    data: dict[str, Any]


@dataclass(frozen=True)
class Event:
    """Something that happened at a step; `wall` is seconds since the epoch."""

    kind: str
    step: int
    wall: float
    data: dict[str, Any]


@dataclass(frozen=True, eq=False)  # compared by identity: hashing hundreds of sites per block is slow
class Table:
    """The columns of a block: all signals of the first site, then of the next."""

    dtype: str
    signals: tuple[str, ...]
    sites: tuple[Site, ...]

    @property
    def columns(self) -> int:
        return len(self.signals) * len(self.sites)


@dataclass(frozen=True, eq=False)
class RowBlock:
    """Some rows of a table, in the order in which they were written."""

    table: Table
    steps: Array
    values: Array  # rows × columns, in the table's own dtype


@dataclass(frozen=True)
class Mark:
    """Everything else: `begin` (who writes), `mark` (how far the run is), `end`, and unknown kinds."""

    kind: str
    data: dict[str, Any]


Record = Fact | Event | Table | RowBlock | Mark | Site


class Decoder:
    """Decodes the payloads of one rank in order, and remembers what ids stand for.

    An id may be declared again: every segment repeats the declarations, so that it can be read when an
    earlier one is damaged.
    """

    def __init__(self) -> None:
        self.sites: dict[int, Site] = {}
        self.tables: dict[int, Table] = {}

    def decode(self, payload: bytes) -> Record:
        """Decode a payload; raises `DecodeError`."""
        try:
            if payload[:1] == b"B":
                return self._block(payload)
            if payload[:1] == b"J":
                return self._record(json.loads(payload[1:]))
        except DecodeError:
            raise
        except (
            ValueError,
            TypeError,
            KeyError,
            ArithmeticError,
            RecursionError,
            MemoryError,
            struct_error,
        ) as e:
            raise DecodeError(str(e)) from e
        return Mark("", {})  # a kind of payload that a newer Clew writes

    def _block(self, payload: bytes) -> RowBlock:
        table = self.tables[block_table(payload)]
        steps, values = decode_block(payload, table.dtype, table.columns)
        return RowBlock(table, steps, values)

    def _record(self, record: Any) -> Record:
        kind = record["t"]
        if kind == "site":
            return self._site(record)
        if kind == "table":
            return self._table(record)
        if kind == "fact":
            return Fact(_str(record["kind"]), _int(record["step"]), _dict(record["data"]))
        if kind == "event":
            wall = float(record["wall"])
            return Event(_str(record["kind"]), _int(record["step"]), wall, _dict(record["data"]))
        return Mark(_str(kind), record)

    def _site(self, record: dict[str, Any]) -> Site:
        raw = _dict(record["site"])
        for name, value in raw.items():
            if name in Site.__dataclass_fields__:
                _int(value) if name == "line" else _str(value)
        site = self.sites[_int(record["id"])] = Site.from_json(raw)
        return site

    def _table(self, record: dict[str, Any]) -> Table:
        signals = tuple(_str(s) for s in record["signals"])
        sites = tuple(self.sites[_int(i)] for i in record["sites"])
        table = Table(_str(record["dtype"]), signals, sites)
        if table.dtype not in DTYPES or not fits(table.columns, table.dtype):
            raise DecodeError(f"a table of {table.columns} columns of {table.dtype}")
        return self._declared(_int(record["id"]), table)

    def _declared(self, number: int, table: Table) -> Table:
        """Return the same object when a later segment repeats the declaration."""
        known = self.tables.get(number)
        if known and (known.dtype, known.signals, known.sites) == (table.dtype, table.signals, table.sites):
            return known
        self.tables[number] = table
        return table


def _str(value: Any) -> str:
    if not isinstance(value, str):
        raise DecodeError(f"text expected, not {type(value).__name__}")
    return value


def _int(value: Any) -> int:
    if not isinstance(value, int) or value not in INT64:
        raise DecodeError("a whole number of 64 bits expected")
    return value


def _dict(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise DecodeError(f"an object expected, not {type(value).__name__}")
    return value
