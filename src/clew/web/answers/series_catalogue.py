"""The list of a run's series in reading order, their keys for links and their labels for people."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any, cast

from clew.records import signal_types, signals
from clew.records.facts.run_facts import CustomSignalFact
from clew.records.signal_types import Group, Signal, is_histogram
from clew.records.signals import GROUPS, find, known_as
from clew.records.site import Site
from clew.store.index.series_index import Index
from clew.web.answer_shapes import GroupCount, SignalChart, SignalRow, SiteJson


@dataclass
class SeriesEntry:
    """One series: its name and its extent."""

    key: str
    signal: str
    site: Site
    site_key: str
    rank: int
    label: str
    bands: list[int]
    own: CustomSignalFact | None = None  # what was recorded about a user's own signal

    @property
    def known(self) -> Signal:
        """The register's entry for its signal, or what the user said about it."""
        known = known_as(self.signal)
        if self.own is None or find(self.signal) is not None:
            return known
        return replace(known, unit=self.own.unit, meaning=self.own.meaning)

    def to_json(self, extents: dict[int, tuple[int, int, int]]) -> SignalRow:
        known = self.known
        spans = [extents[band] for band in self.bands if band in extents]
        return {
            "key": self.key,
            "signal": self.signal,
            "site": site_json(self.site),
            "site_id": site_id(self.site_key),
            "label": self.label,
            "group": known.group.name,
            "rank": self.rank,
            "points": sum(rows for rows, _, _ in spans),
            "first": min((first for _, first, _ in spans), default=0),
            "last": max((last for _, _, last in spans), default=0),
            "unit": known.unit,
            "title": known.title,
            "about": known.meaning.replace("`", ""),
            "chart": self.chart(),
            "glance": known.glance,
        }

    def chart(self) -> SignalChart | None:
        """The chart at the top of the page that shows the series, and its name there."""
        known = self.known
        if known.chart is None:
            return None
        title = known.chart.title or f"{known.title}{self.label.removeprefix(self.signal)}"
        return {
            "title": title,
            "together": known.chart.together,
            "large": known.chart.large,
            "robust": known.chart.robust,
            "line": self._line(),
        }

    def _line(self) -> str:
        known, where = self.known, self.label.removeprefix(self.signal)
        if known.chart is not None and known.chart.by_place:
            return where.strip() or known.line
        return f"{known.line or self.signal}{where}"


class Catalogue:
    """All series of one run; updated as its index grows."""

    def __init__(
        self,
        index: Index,
        depth: Callable[[Site], int],
        custom: Callable[[], Iterable[CustomSignalFact]],
    ) -> None:
        self._index = index
        self._depth = depth
        self._custom = custom  # what was recorded about the user's own signals
        self._parse: dict[str, Site] = {}
        self._begin()

    def _begin(self) -> None:
        self._row, self._generation = 0, self._index.generation
        self.entries: dict[str, SeriesEntry] = {}
        self.extents: dict[int, tuple[int, int, int]] = {}
        self._seen: set[str] = set()  # keys of series with at least one finite value
        self._searched: dict[tuple[int, str], int] = {}
        self._ordered: list[SeriesEntry] | None = None
        self._shown: list[SeriesEntry] | None = None
        self._by_signal: dict[str, list[SeriesEntry]] = {}

    def refresh(self) -> None:
        """Add what is new in the index."""
        if self._generation != self._index.generation:
            self._begin()
        self._row, parts = self._index.parts(self._row)
        for part in parts:
            key = series_key(part.rank, part.signal, part.site_key)
            if key not in self.entries:
                site = self._site(part.site_key)
                self.entries[key] = SeriesEntry(key, part.signal, site, part.site_key, part.rank, "", [])
            self.entries[key].bands.append(part.band)
        if parts:
            self._label()
            self._ordered = None
        self._describe()
        self.extents = self._index.extents()
        self._shown = None

    def _describe(self) -> None:
        """Attach to the user's own signals what was recorded about them."""
        own = {fact.name: fact for fact in self._custom()}
        for entry in self.entries.values() if own else ():
            entry.own = own.get(entry.signal)

    def reorder(self) -> None:
        """The order of the layers became known, or changed."""
        self._ordered = self._shown = None

    def _site(self, key: str) -> Site:
        if key not in self._parse:
            self._parse[key] = Site.from_json(json.loads(key))
        return self._parse[key]

    def _label(self) -> None:
        """As short as possible while unique: signal and layer, then phase, line, rank."""
        roots = {e.site.root for e in self.entries.values() if e.site.module and e.site.root}
        ranks = {e.rank for e in self.entries.values()}
        for entry in self.entries.values():
            where = site_label(entry.site, several_roots=len(roots) > 1)
            phase = " (eval)" if entry.site.phase == "eval" else ""
            rank = f" [rank {entry.rank}]" if len(ranks) > 1 else ""
            entry.label = f"{entry.signal}{phase}{'  ' + where if where else ''}{rank}"
        shared = Counter(e.label for e in self.entries.values())
        for entry in self.entries.values():
            if shared[entry.label] > 1 and (place := place_label(entry.site)):
                entry.label = f"{entry.label}  {place}"

    def ordered(self) -> list[SeriesEntry]:
        """Reading order; series that never had a finite value are left out."""
        if self._shown is None:
            self._find_finite()
            in_order = self._ordered or sorted(self.entries.values(), key=self._order)
            self._ordered = in_order
            self._shown = [e for e in in_order if is_histogram(e.signal) or e.key in self._seen]
            self._by_signal = {}
            for entry in self._shown:
                self._by_signal.setdefault(entry.signal, []).append(entry)
        return self._shown

    def _order(self, entry: SeriesEntry) -> tuple[Any, ...]:
        group = entry.known.group
        depth = self._depth(entry.site) if group.layered else 0
        return group_rank(group), group.name, depth, entry.site_key, _signal_order(entry.signal), entry.rank

    def _find_finite(self) -> None:
        """Find series that have become worth showing; one with a finite value stays so."""
        open_signals = {
            (e.rank, e.signal): e
            for e in self.entries.values()
            if e.key not in self._seen and not is_histogram(e.signal)
        }
        for rank, signal in open_signals:
            rows = sum(rows for rows, _, _ in self.extents.values())
            if self._searched.get((rank, signal)) == rows:
                continue
            self._searched[rank, signal] = rows
            for stretch in self._index.wide(signal, max_points=1, rank=rank):
                finite = (stretch.envelope.counts - stretch.envelope.bad).sum(axis=0) > 0
                self._seen.update(
                    series_key(rank, signal, site)
                    for site, ok in zip(stretch.sites, finite, strict=True)
                    if ok
                )

    def find(self, signal: str, rank: int | None = None) -> list[SeriesEntry]:
        """The series of a signal, in order."""
        self.ordered()
        return [e for e in self._by_signal.get(signal, []) if rank is None or e.rank == rank]

    def search(
        self, text: str = "", group: str = "", keys: Sequence[str] = (), *, rank: int | None, hist: bool
    ) -> list[SeriesEntry]:
        """What matches all the words, any of the keys, the group and the rank."""
        words = text.lower().split()
        wanted = set(keys)
        return [
            entry
            for entry in self.ordered()
            if (rank is None or entry.rank == rank)
            and (not wanted or entry.key in wanted)
            and (hist or wanted or not is_histogram(entry.signal))
            and (not group or entry.known.group.name == group)
            and all(word in _haystack(entry) for word in words)
        ]


def _haystack(entry: SeriesEntry) -> str:
    site = entry.site
    return f"{entry.label} {entry.signal} {site.module or ''} {site.op or ''} {site.file or ''}".lower()


FIRST = signal_types.names(
    signals.LOSS,
    signals.LR,
    signals.GRAD_NORM,
    signals.STEP_TIME,
    signals.GRADIENT.norm,
    signals.UPDATE_RATIO,
    signals.ACTIVATION.std,
)  # of their groups


def _signal_order(signal: str) -> tuple[int, str]:
    return (FIRST.index(signal) if signal in FIRST else len(FIRST)), signal


def groups_of(entries: Iterable[SeriesEntry]) -> list[GroupCount]:
    """The number of series in each group, in order."""
    counts = Counter(entry.known.group for entry in entries)
    ordered = sorted(counts, key=lambda group: (group_rank(group), group.name))
    return [{"name": group.name, "count": counts[group]} for group in ordered]


# ---- names -----------------------------------------------------------------------------------

RANKS = {group: rank for rank, group in enumerate(GROUPS)}


def series_key(rank: int, signal: str, site_key: str) -> str:
    """The name of a series in links: always the same for a run."""
    return _digest(f"{rank}\n{signal}\n{site_key}")


def site_id(site_key: str) -> str:
    return _digest(site_key)


def site_json(site: Site) -> SiteJson:
    """The site as it appears in an answer."""
    return cast(SiteJson, site.to_json())


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:12]


def group_rank(group: Group) -> int:
    """Its position in the list of signals: unknown groups, such as a newer Clew's, come last."""
    return RANKS.get(group, len(RANKS))


def site_label(site: Site, *, several_roots: bool = False) -> str:
    """`encoder.fc1.weight`, or another description of the place."""
    if site.module is not None:
        path = site.module or site.root or "the model"
        parts = [site.root if several_roots and site.module and site.root else None, path, site.param]
        name = ".".join(part for part in parts if part)
        return f"{name} ({site.op})" if site.op and site.op not in ("input", "step") else name
    return site.op if site.op and site.op.startswith("input") else ""


def place_label(site: Site) -> str:
    """`train.py:34`."""
    if site.file is None:
        return ""
    name = PurePath(site.file.replace("\\", "/")).name
    return name if site.line is None else f"{name}:{site.line}"
