"""Interface to which hooks write what they record. The store's log writer implements it; tests use a list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy.typing as npt

from clew.records.site import Site

Array = npt.NDArray[Any]


class Sink(Protocol):
    """Every call is cheap: it only queues, and never raises because of a disk problem."""

    def site(self, site: Site) -> int: ...

    def table(self, signals: Sequence[str], sites: Sequence[int], dtype: str = "f8") -> int: ...

    def row(self, table: int, step: int, values: Any) -> None: ...

    def rows(self, table: int, steps: Array, values: Array) -> None: ...

    def fact(self, kind: str, step: int, data: dict[str, Any]) -> None: ...

    def event(self, kind: str, step: int, data: dict[str, Any]) -> None: ...

    def nudge(self) -> None:
        """Nothing more will come for a while: what is queued may be written now."""


class SiteTables:
    """One table for each kind of row and site."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._known: dict[tuple[str, Site], int] = {}

    def table(self, signals: Sequence[str], site: Site) -> int:
        """The table of rows with these signals at this site."""
        key = (signals[0], site)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._sink.table(signals, [self._sink.site(site)])
        return known
