"""Numbers for sites and tables, so that a row need not repeat where it belongs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from clew.records.site import Site
from clew.store.write.frames import DTYPES


@dataclass(frozen=True)
class Columns:
    """What the encoder must know of a table."""

    dtype: str
    count: int
    loss: int | None  # the column with the training loss, for the marks


class Names:
    """Gives each site and table its number once, and declares it in the log before it is used."""

    def __init__(self, declare: Callable[[dict[str, Any]], None]) -> None:
        self._declare = declare
        self._sites: dict[Site, int] = {}
        self._train_sites: set[int] = set()
        self._table_ids: dict[tuple[tuple[str, ...], tuple[int, ...], str], int] = {}
        self.tables: dict[int, Columns] = {}
        self.lock = threading.RLock()

    def site(self, site: Site) -> int:
        with self.lock:
            number = self._sites.get(site)
            if number is None:
                number = self._sites[site] = len(self._sites)
                if site.phase != "eval":
                    self._train_sites.add(number)
                self._declare({"t": "site", "id": number, "site": site.to_json()})
            return number

    def table(self, signals: Sequence[str], sites: Sequence[int], dtype: str) -> int:
        if dtype not in DTYPES:
            raise ValueError(f"a table is of {', '.join(DTYPES)}, not {dtype!r}")
        key = (tuple(signals), tuple(sites) or (self.site(Site()),), dtype)
        with self.lock:
            number = self._table_ids.get(key)
            if number is None:
                number = self._table_ids[key] = self._new_table(*key)
            return number

    def _new_table(self, signals: tuple[str, ...], sites: tuple[int, ...], dtype: str) -> int:
        number = len(self.tables)
        loss = self._loss_column(signals, sites)
        self.tables[number] = Columns(dtype, len(signals) * len(sites), loss)
        self._declare({"t": "table", "id": number, "dtype": dtype, "signals": signals, "sites": sites})
        return number

    def _loss_column(self, signals: tuple[str, ...], sites: tuple[int, ...]) -> int | None:
        training = [i for i, site in enumerate(sites) if site in self._train_sites]
        if "loss" not in signals or not training:
            return None
        return training[0] * len(signals) + signals.index("loss")
