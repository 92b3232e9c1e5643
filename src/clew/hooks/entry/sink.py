"""Where attached code puts what it saw. The store's writer has this shape; tests use a list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy.typing as npt

from clew.records.site import Site

Array = npt.NDArray[Any]


class Sink(Protocol):
    """Every call is cheap: it queues, and never raises for want of a disk."""

    def site(self, site: Site) -> int: ...

    def table(self, signals: Sequence[str], sites: Sequence[int], dtype: str = "f8") -> int: ...

    def row(self, table: int, step: int, values: Any) -> None: ...

    def rows(self, table: int, steps: Array, values: Array) -> None: ...

    def fact(self, kind: str, step: int, data: dict[str, Any]) -> None: ...

    def event(self, kind: str, step: int, data: dict[str, Any]) -> None: ...

    def nudge(self) -> None:
        """Nothing more is to be expected for a while: what is queued may be written now."""
