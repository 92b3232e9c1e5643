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
