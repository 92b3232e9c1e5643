"""The report: the browser page with all answers inlined, in one file that needs no server.

Answers are taken at a resolution at which they fit into the size asked for. What is reduced keeps the
minimum, maximum and mean of every stretch, and the report says so.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import quote

from clew.records.version import __version__
from clew.render.bundle import BundleNotBuilt, assemble, page_with_code
from clew.web.answer_shapes import (
    DataAnswer,
    GraphAnswer,
    GroupCount,
    HistogramSites,
    ProfileAnswer,
    ReportInfo,
    SignalList,
    SignalRow,
    StoredSeries,
)
from clew.web.answers.axes import StepAxis
from clew.web.answers.desk import Desk
from clew.web.answers.series_catalogue import SeriesEntry
from clew.web.answers.series_points import named, shape
from clew.web.runs.opened_run import OpenRun
from clew.web.strict_json import dumps, rounded

PATIENCE = 600.0  # seconds for a verdict
LEAST_BYTES = 12  # of a point: a step, a value, two commas
SAFE = "!~*'()"  # as encodeURIComponent leaves them
LAYER_SIGNALS = (
    "gradient.norm", "update.ratio", "activation.dead_fraction", "activation.std", "activation.mean",
    "activation.saturated", "weight.norm",
)  # fmt: skip


class ReportError(Exception):
    """The report can't be made; the message is one clear line."""


@dataclass(frozen=True)
class ReportDetail:
    """How finely a report shows things; 0 leaves them out."""

    points: int  # of a series
    layer_points: int  # of a series of one layer
    columns: int  # of a map of layers
    histogram_columns: int
    files: bool = True  # graphs, profiles and data as they are
    every_layer: bool = False  # all series of layers, not only the telling ones


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


@dataclass
class Content:
    """The answers of a report, by request, and what had to be left out."""

    answers: dict[str, Any] = field(default_factory=dict)
    reduced: int = 0  # series that do not show every point
    left_out: list[str] = field(default_factory=list)


def build_report(desk: Desk, names: Sequence[str], *, notes: str, limit: int, title: str) -> str:
    """The whole file as text, at most `limit` bytes of it."""
    try:
        page = page_with_code()
    except BundleNotBuilt as error:
        raise ReportError(str(error)) from error
    for level in LEVELS:
        if level is not LEVELS[-1] and _at_least(desk, names, level) > limit:
            continue
        content = gather(desk, names, level)
        content.answers["report"] = _about(content, level, notes, limit, title)
        text = assemble(page, dumps(content.answers), title)
        if len(text.encode()) <= limit:
            return text
    raise ReportError(
        f"the report does not fit into {limit / 1e6:g} MB even at the lowest resolution "
        f"({len(text.encode()) / 1e6:.1f} MB); raise the limit with --max-size, or include fewer runs"
    )


def _at_least(desk: Desk, names: Sequence[str], level: ReportDetail) -> int:
    """Bytes that the series alone will take: thousands of them are not read in vain."""
    points = 0
    for name in names:
        with desk.library.open(name) as run, run.lock:
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


def gather(desk: Desk, names: Sequence[str], level: ReportDetail) -> Content:
    """Every answer that the page may ask for, at one level of detail."""
    content = Content()
    for name in names:
        _gather_run(desk, name, level, content)
    rows = {row["id"]: row for row in desk.runs()["runs"]}
    content.answers["api/v1/runs"] = {**desk.runs(), "runs": [rows[name] for name in names]}
    if len(names) > 1:
        content.answers[f"api/v1/compare?runs={quote(','.join(names), safe=SAFE)}"] = desk.compare(names)
    content.left_out = list(dict.fromkeys(content.left_out))
    return content


def _gather_run(desk: Desk, name: str, level: ReportDetail, content: Content) -> None:
    base = f"api/v1/runs/{quote(name, safe=SAFE)}"
    answers = content.answers
    answers[base] = detail = desk.run(name, patience=PATIENCE)
    evidence = {e["key"] for link in detail["links"] for e in link["evidence"] if e["key"]}
    with desk.library.open(name) as run:
        with run.lock:
            kept, left = _chosen(run, level, evidence)
            extents = run.catalogue.extents
            listed = [entry.to_json(extents) for entry in kept]
        answers[f"{base}/signals"] = _signals(listed)
        series = _all_series(run, kept, level)
    answers[f"{base}/series"] = {"x": "step", "from": None, "to": None, "series": series}
    content.reduced += sum(not each["exact"] for each in series)
    if left:
        content.left_out.append("series of single layers (shown in the layer maps)")
    _gather_maps(desk, name, base, level, content)
    answers[f"{base}/notes"] = desk.notes(name)
    answers[f"{base}/profile"] = _profile(desk, name, level, content)
    answers[f"{base}/graph"] = _graph(desk, name, level, content)
    answers[f"{base}/data"] = _data(desk, name, level, content)


def _chosen(run: OpenRun, level: ReportDetail, evidence: set[str]) -> tuple[list[SeriesEntry], bool]:
    """The series to show: all but the layers', and of those the telling ones; and whether some are left."""
    rank = run.rank(None)
    everything = run.catalogue.search(rank=rank, hist=False)
    kept = [
        entry
        for entry in everything
        if not entry.known.group.layered
        or entry.key in evidence
        or (level.layer_points and (level.every_layer or entry.signal in LAYER_SIGNALS))
    ]
    return kept, len(kept) < len(everything)


def _signals(listed: list[SignalRow]) -> SignalList:
    groups: dict[str, int] = {}
    for entry in listed:
        groups[entry["group"]] = groups.get(entry["group"], 0) + 1
    counted: list[GroupCount] = [{"name": name, "count": count} for name, count in groups.items()]
    return {"total": len(listed), "offset": 0, "groups": counted, "signals": listed}


def _all_series(run: OpenRun, kept: Sequence[SeriesEntry], level: ReportDetail) -> list[StoredSeries]:
    """Each at its resolution, with its places on all axes."""
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


def _gather_maps(desk: Desk, name: str, base: str, level: ReportDetail, content: Content) -> None:
    first = desk.layers(name, columns=max(level.columns, 1))
    stats = [each["stat"] for each in first["stats"]] if level.columns else []
    if not stats:
        content.answers[f"{base}/layers"] = (
            first if "missing" in first else {"missing": "left out", "stats": []}
        )
    if first["stats"] and not stats:
        content.left_out.append("layer maps")
    for stat in stats:
        answer = desk.layers(name, stat=stat, columns=level.columns)
        content.answers[f"{base}/layers?stat={quote(stat, safe=SAFE)}"] = answer
    _gather_histograms(desk, name, base, level, content)


def _gather_histograms(desk: Desk, name: str, base: str, level: ReportDetail, content: Content) -> None:
    listed = desk.histograms(name)
    content.answers[f"{base}/histograms"] = listed
    if "sites" not in listed:
        return
    if not level.histogram_columns:
        content.answers[f"{base}/histograms"] = {"missing": "left out"}
        content.left_out.append("histograms")
        return
    for site in cast(HistogramSites, listed)["sites"]:
        for stat in site["stats"]:
            _gather_kinds(desk, name, base, site["site"], stat, level, content)


def _gather_kinds(
    desk: Desk, name: str, base: str, site: str, stat: str, level: ReportDetail, content: Content
) -> None:
    kinds = ["log2"]
    for kind in kinds:
        answer = desk.histograms(name, site=site, stat=stat, columns=level.histogram_columns, kind=kind)
        offered = cast(list[str], answer.get("kinds", []))
        kinds += [each for each in offered if each not in kinds]
        content.answers[f"{base}/histograms?site={site}&stat={stat}&kind={kind}"] = answer


def _profile(desk: Desk, name: str, level: ReportDetail, content: Content) -> ProfileAnswer:
    answer = desk.profile(name)
    if level.files or answer["profile"] is None:
        return answer
    content.left_out.append("profiles")
    return {**answer, "profile": None, "missing": "left out to keep the report small"}


def _graph(desk: Desk, name: str, level: ReportDetail, content: Content) -> GraphAnswer:
    answer = desk.graph(name)
    if level.files or not answer["graphs"]:
        return answer
    content.left_out.append("graphs")
    return {**answer, "graphs": [], "layouts": [], "missing": "left out to keep the report small"}


def _data(desk: Desk, name: str, level: ReportDetail, content: Content) -> DataAnswer:
    answer = desk.data(name)
    if level.files or not answer["files"]:
        return answer
    content.left_out.append("recorded data")
    return {**answer, "files": [], "missing": "left out to keep the report small"}
