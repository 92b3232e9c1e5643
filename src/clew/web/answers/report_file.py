"""The report: the browser page with all answers inlined, in one file that needs no server.

Answers are computed at a resolution that fits the requested size. A reduced series keeps the
minimum, maximum and mean of every stretch, and the report says so.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import quote

from clew.records.signal_types import Signal
from clew.records.version import __version__
from clew.render.html_bundle import BundleNotBuilt, assemble, page_with_code
from clew.web.answer_shapes import HistogramSites, ReportInfo, SignalList, StoredSeries
from clew.web.answers.api_answers import ApiAnswers
from clew.web.answers.series_catalogue import SeriesEntry, groups_of
from clew.web.answers.series_points import StepAxis, named, shape
from clew.web.responses import dumps, rounded
from clew.web.runs.opened_run import OpenRun

PATIENCE = 600.0  # seconds for a verdict
LEAST_BYTES = 12  # bytes of a point: a step, a value, two commas
SAFE = "!~*'()"  # as encodeURIComponent leaves them


class ReportError(Exception):
    """The report can't be created; the message is one clear line."""


@dataclass(frozen=True)
class ReportDetail:
    """The level of detail of a report; 0 leaves things out."""

    points: int  # of a series
    layer_points: int  # of a series of one layer
    columns: int  # of a map of layers
    histogram_columns: int
    files: bool = True  # graphs, profiles and data in full
    every_layer: bool = False  # all series of layers, not only the informative ones


LEVELS = (
    ReportDetail(5000, 2000, 500, 60, every_layer=True),
    ReportDetail(5000, 1000, 500, 60),
    ReportDetail(2000, 400, 400, 40),
    ReportDetail(1000, 200, 300, 24),
    ReportDetail(500, 100, 200, 12),
    ReportDetail(300, 0, 150, 8),
    ReportDetail(200, 0, 100, 0),
    ReportDetail(100, 0, 50, 0),
    ReportDetail(100, 0, 50, 0, files=False),
    ReportDetail(50, 0, 0, 0, files=False),
)


def build_report(api: ApiAnswers, names: Sequence[str], *, notes: str, limit: int, title: str) -> str:
    """The whole file as text, at most `limit` bytes."""
    try:
        page = page_with_code()
    except BundleNotBuilt as error:
        raise ReportError(str(error)) from error
    for level in LEVELS:
        if level is not LEVELS[-1] and _at_least(api, names, level) > limit:
            continue
        content = Content(api, names, level)
        content.answers["report"] = _about(content, level, notes, limit, title)
        text = assemble(page, dumps(content.answers), title)
        if len(text.encode()) <= limit:
            return text
    raise ReportError(
        f"the report does not fit into {limit / 1e6:g} MB even at the lowest resolution "
        f"({len(text.encode()) / 1e6:.1f} MB); raise the limit with --max-size, or include fewer runs"
    )


def _at_least(api: ApiAnswers, names: Sequence[str], level: ReportDetail) -> int:
    """Bytes that the series alone will take, so that thousands of them are not read in vain."""
    points = 0
    for name in names:
        with api.library.open(name) as run, run.lock:
            extents = run.catalogue.extents
            for entry in _chosen(run, level, set())[0]:
                rows = sum(extents[band][0] for band in entry.bands if band in extents)
                points += min(rows, _points(entry, level))
    return points * LEAST_BYTES


def _points(entry: SeriesEntry, level: ReportDetail) -> int:
    return max(level.layer_points if entry.known.group.layered else level.points, 50)


def _about(content: Content, level: ReportDetail, notes: str, limit: int, title: str) -> ReportInfo:
    said = [f"{content.reduced} series are reduced to at most {level.points} intervals each, with minimum, "
            "maximum and mean."] if content.reduced else []  # fmt: skip
    said += [f"Left out to keep the file small: {', '.join(content.left_out)}."] if content.left_out else []
    return {
        "made": time.time(),
        "version": __version__,
        "title": title,
        "notes": notes,
        "limit": limit,
        "bounded": bool(said),
        "says": " ".join(said),
        "left_out": content.left_out,
    }


class Content:
    """Every answer that the page may request, at one level of detail, and what had to be left out."""

    def __init__(self, api: ApiAnswers, names: Sequence[str], level: ReportDetail) -> None:
        self._api, self._level = api, level
        self.answers: dict[str, Any] = {}  # by request
        self.reduced = 0  # series that do not show every point
        self._left_out: list[str] = []
        for name in names:
            self._add_run(name, f"api/v1/runs/{quote(name, safe=SAFE)}")
        rows = {row["id"]: row for row in api.runs()["runs"]}
        self.answers["api/v1/runs"] = {**api.runs(), "runs": [rows[name] for name in names]}
        if len(names) > 1:
            self.answers[f"api/v1/compare?runs={quote(','.join(names), safe=SAFE)}"] = api.compare(names)

    @property
    def left_out(self) -> list[str]:
        return list(dict.fromkeys(self._left_out))

    def _add_run(self, name: str, base: str) -> None:
        api, answers = self._api, self.answers
        answers[base] = detail = api.run(name, patience=PATIENCE)
        evidence = {e["key"] for link in detail["links"] for e in link["evidence"] if e["key"]}
        with api.library.open(name) as run:
            with run.lock:
                kept, left = _chosen(run, self._level, evidence)
                answers[f"{base}/signals"] = _signals(run, kept)
            series = _all_series(run, kept, self._level)
        answers[f"{base}/series"] = {"x": "step", "from": None, "to": None, "series": series}
        self.reduced += sum(not each["exact"] for each in series)
        if left:
            self._left_out.append("series of single layers (shown in the layer maps)")
        self._add_maps(name, base)
        self._add_histograms(name, base)
        answers[f"{base}/notes"] = api.notes(name)
        answers[f"{base}/profile"] = self._with_file(api.profile(name), "profiles", profile=None)
        answers[f"{base}/graph"] = self._with_file(api.graph(name), "graphs", graphs=[], layouts=[])
        answers[f"{base}/data"] = self._with_file(api.data(name), "recorded data", files=[])

    def _add_maps(self, name: str, base: str) -> None:
        columns = self._level.columns
        first = self._api.layers(name, columns=max(columns, 1))
        stats = [each["stat"] for each in first["stats"]] if columns else []
        if not stats:
            self.answers[f"{base}/layers"] = (
                first if "missing" in first else {"missing": "left out", "stats": []}
            )
        if first["stats"] and not stats:
            self._left_out.append("layer maps")
        for stat in stats:
            answer = self._api.layers(name, stat=stat, columns=columns)
            self.answers[f"{base}/layers?stat={quote(stat, safe=SAFE)}"] = answer

    def _add_histograms(self, name: str, base: str) -> None:
        listed = self._api.histograms(name)
        self.answers[f"{base}/histograms"] = listed
        if "sites" not in listed:
            return
        if not self._level.histogram_columns:
            self.answers[f"{base}/histograms"] = {"missing": "left out"}
            self._left_out.append("histograms")
            return
        for site in cast(HistogramSites, listed)["sites"]:
            for stat in site["stats"]:
                self._add_kinds(name, base, site["site"], stat)

    def _add_kinds(self, name: str, base: str, site: str, stat: str) -> None:
        columns = self._level.histogram_columns
        kinds = ["log2"]
        for kind in kinds:
            answer = self._api.histograms(name, site=site, stat=stat, columns=columns, kind=kind)
            offered = cast(list[str], answer.get("kinds", []))
            kinds += [each for each in offered if each not in kinds]
            self.answers[f"{base}/histograms?site={site}&stat={stat}&kind={kind}"] = answer

    def _with_file(self, answer: Mapping[str, Any], what: str, **empty: Any) -> Mapping[str, Any]:
        """An answer with the content of a file, or without it (`empty`) if there is no room for files."""
        if self._level.files or not any(answer[field] for field in empty):
            return answer
        self._left_out.append(what)
        return {**answer, **empty, "missing": "left out to keep the report small"}


def _chosen(run: OpenRun, level: ReportDetail, evidence: set[str]) -> tuple[list[SeriesEntry], bool]:
    """The series to show: all but layers', and the informative ones of those; whether some are left out."""
    rank = run.rank(None)
    everything = run.catalogue.search(rank=rank, hist=False)
    kept = [
        entry
        for entry in everything
        if not entry.known.group.layered
        or entry.key in evidence
        or (level.layer_points and (level.every_layer or is_kept(entry.known)))
    ]
    return kept, len(kept) < len(everything)


def is_kept(signal: Signal) -> bool:
    """Whether small reports, too, have this signal's series of each layer."""
    return signal.layer_map is not None and signal.layer_map.kept


def _signals(run: OpenRun, kept: Sequence[SeriesEntry]) -> SignalList:
    signals = [entry.to_json(run.catalogue.extents) for entry in kept]
    return {"total": len(signals), "offset": 0, "groups": groups_of(kept), "signals": signals}


def _all_series(run: OpenRun, kept: Sequence[SeriesEntry], level: ReportDetail) -> list[StoredSeries]:
    """Each at its resolution, with its positions on all axes."""
    rank = run.rank(None)
    wall, epoch = StepAxis(run, "wall", rank), StepAxis(run, "epoch", rank)
    found: list[StoredSeries] = []
    for entry in kept:
        envelope = run.query(entry, None, None, _points(entry, level))
        steps = envelope.steps.tolist()
        stored = cast(StoredSeries, {**named(entry), **shape(envelope), "steps": steps})
        if wall.known:
            stored["wall"] = rounded(wall.places(envelope.steps))
        if epoch.known:
            stored["epoch"] = rounded(epoch.places(envelope.steps))
        found.append(stored)
    return found
