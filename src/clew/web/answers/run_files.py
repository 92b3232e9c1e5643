"""Answers from the other files in a run folder: graph, profile, data, notes."""

from __future__ import annotations

import json
import os
import time
from functools import lru_cache
from pathlib import Path
from typing import Any

from clew.checks.evidence.recorded_facts import flag, rows, text, whole
from clew.records.network import Graph
from clew.render.network.graph_layout import layout_json
from clew.render.network.recorded_graph import read_graph
from clew.web.answer_shapes import (
    DataAnswer,
    DataFile,
    GraphAnswer,
    GraphModel,
    GraphModule,
    ModelRow,
    ModuleHealth,
    NotesAnswer,
    ProfileAnswer,
    ViewsOffered,
)
from clew.web.runs.opened_run import OpenRun
from clew.web.runs.run_library import inside
from clew.web.strict_json import strict

LARGEST_FILE = 32 << 20  # bytes of a graph or profile
LARGEST_DATA = 4 << 20
MOST_FILES = 64
LARGEST_NOTES = 1 << 20
PARTS = ("data", "forward", "backward", "optimizer", "rest", "clew")

NO_GRAPH = "the graph was not recorded; record it with: clew run --graph train.py"
NO_PROFILE = "the times above are recorded in every run; profile the steps with: clew profile train.py"
NO_DATA = "no samples or batches were recorded"


class TooLarge(ValueError):  # noqa: N818 - says what it is
    """More than a note may be."""


def json_file(run: Path, file: Path, limit: int) -> Any:
    """The content of a file of the run; None if it is not there, not JSON, too large, or a link out."""
    try:
        if not file.is_file() or not inside(file, run) or file.stat().st_size > limit:
            return None
        return strict(json.loads(file.read_bytes()))
    except (OSError, ValueError, RecursionError):
        return None


def json_files(run: Path, folder: str, pattern: str, limit: int) -> list[tuple[str, Any]]:
    """Every such file of a folder of the run, by its stem."""
    try:
        files = sorted((run / folder).glob(pattern))[:MOST_FILES]
    except OSError:
        return []
    found = [(file.stem, json_file(run, file, limit)) for file in files]
    return [(name, content) for name, content in found if content is not None]


def graph_answer(run: OpenRun, rank: int, verdict: dict[str, Any] | None) -> GraphAnswer:
    graphs = [
        g for _, g in json_files(run.path, "traces", "graph*.json", LARGEST_FILE) if isinstance(g, dict)
    ]
    models = _models(run, rank)
    return {
        "models": models,
        "graphs": graphs,
        "layouts": [_layout(graph) for graph in graphs],
        "health": health(verdict),
        "time": _module_times(run.path),
        "missing": None if graphs else _why_no_graph(run, rank),
    }


def _layout(graph: dict[str, Any]) -> dict[str, Any] | None:
    """Where everything stands; None of a damaged file."""
    found = read_graph(graph)
    return _known_layout(found) if found is not None else None


@lru_cache(maxsize=4)
def _known_layout(graph: Graph) -> dict[str, Any]:
    """A graph does not change, and is asked for whenever its run has grown."""
    return layout_json(graph)


def _why_no_graph(run: OpenRun, rank: int) -> str:
    """It was not asked for, or could not be had."""
    for fact in run.facts("graph_recorded", rank):
        reason = text(fact.data.get("reason"))
        if reason:
            return f"the graph could not be recorded: {reason}"
    return NO_GRAPH


def _models(run: OpenRun, rank: int) -> list[GraphModel]:
    newest = {text(f.data.get("root")) or "": f.data for f in run.facts("model", rank)}
    found: list[GraphModel] = []
    for root, data in newest.items():
        sizes: dict[str, list[int]] = {}
        for row in rows(data.get("parameters")):
            total = sizes.setdefault(text(row.get("module")) or "", [0, 0])
            numel = whole(row.get("numel")) or 0
            total[0] += numel
            total[1] += numel if flag(row.get("requires_grad")) else 0
        modules: list[GraphModule] = [
            {
                "path": text(row.get("path")) or "",
                "class": text(row.get("class")) or "",
                "file": text(row.get("file")),
                "line": whole(row.get("line")),
                "order": at,
                "parameters": sizes.get(text(row.get("path")) or "", [0, 0])[0],
                "trainable": sizes.get(text(row.get("path")) or "", [0, 0])[1],
            }
            for at, row in enumerate(rows(data.get("modules")))
        ]
        found.append(
            {
                "root": root,
                "class": text(data.get("class")) or "",
                "file": text(data.get("file")),
                "line": whole(data.get("line")),
                "modules": modules,
            }
        )
    return found


def model_rows(run: OpenRun, rank: int) -> list[ModelRow]:
    """The models in a line each."""
    return [
        {
            "root": model["root"],
            "class": model["class"],
            "file": model["file"],
            "line": model["line"],
            "parameters": sum(module["parameters"] for module in model["modules"]),
            "modules": len(model["modules"]),
        }
        for model in _models(run, rank)
    ]


def health(verdict: dict[str, Any] | None) -> dict[str, ModuleHealth]:
    """By module path the checks that found something there, and the worst severity."""
    order = ("error", "warning", "advice")
    found: dict[str, ModuleHealth] = {}
    for finding in (verdict or {}).get("findings", []):
        module = finding["site"].get("module")
        if module:
            known = found.setdefault(module, {"severity": finding["severity"], "checks": []})
            known["severity"] = min(known["severity"], finding["severity"], key=order.index)
            known["checks"].append(finding["check"])
    return found


def _module_times(run: Path) -> dict[str, float] | None:
    profile = json_file(run, run / "traces" / "profile.json", LARGEST_FILE)
    listed = rows(profile.get("modules")) if isinstance(profile, dict) else []
    times = {
        str(row["module"]): float(row.get("forward") or 0) + float(row.get("backward") or 0)
        for row in listed
        if isinstance(row.get("module"), str)
        and all(isinstance(row.get(k) or 0, (int, float)) for k in ("forward", "backward"))
    }
    return times or None


def profile_answer(run: OpenRun, rank: int) -> ProfileAnswer:
    profile = json_file(run.path, run.path / "traces" / "profile.json", LARGEST_FILE)
    known = profile if isinstance(profile, dict) else None
    parts = [(name, run.only(f"time.{name}", rank)) for name in PARTS]
    total = run.only("step.time", rank)
    return {
        "steps": {
            "unit": "s",
            "parts": [{"name": name, "key": entry.key} for name, entry in parts if entry is not None],
            "total": total.key if total is not None else None,
        },
        "profile": known,
        "missing": None if known is not None else NO_PROFILE,
    }


def data_answer(run: OpenRun, rank: int) -> DataAnswer:
    found = json_files(run.path, "data", "*.json", LARGEST_DATA)
    files: list[DataFile] = [{"name": name, "content": content} for name, content in found]
    labels = {
        str([f.data.get(k) for k in ("kind", "file", "line")]): f.data for f in run.facts("labels", rank)
    }
    inputs = [e.key for e in run.catalogue.search(rank=rank, hist=False) if e.signal.startswith("input.")]
    return {
        "files": files,
        "loaders": [strict(f.data) for f in run.facts("loader", rank)],
        "labels": [strict(data) for data in labels.values()],
        "inputs": inputs,
        "missing": None if files else NO_DATA,
    }


def read_notes(run: Path) -> NotesAnswer:
    file = run / "notes.md"
    try:
        if file.is_file() and inside(file, run) and file.stat().st_size <= LARGEST_NOTES:
            words = file.read_text(encoding="utf-8", errors="replace")
            return {"markdown": words, "modified": file.stat().st_mtime}
    except OSError:
        pass
    return {"markdown": "", "modified": None}


def write_notes(run: Path, words: str) -> NotesAnswer:
    """Put them into the run folder, all or nothing; a link in their place is replaced, not followed."""
    if len(words.encode(errors="replace")) > LARGEST_NOTES:
        raise TooLarge("notes are limited to 1 MB")
    aside = run / f".notes.{os.getpid()}.{time.monotonic_ns()}"
    try:
        aside.write_text(words, encoding="utf-8", errors="replace")
        os.replace(aside, run / "notes.md")
    finally:
        aside.unlink(missing_ok=True)
    return read_notes(run)


def has(run: OpenRun, rank: int) -> ViewsOffered:
    """Which views have something to draw."""
    entries = [e for e in run.catalogue.entries.values() if e.rank == rank]
    layered = any(
        e.site.module is not None and e.signal.startswith(("activation.", "gradient.")) for e in entries
    )
    return {
        "series": bool(entries),
        "layers": layered,
        "histograms": any(e.signal.endswith(".log2hist.00") for e in entries),
        "graph": bool(run.facts("model", rank)) or _any(run.path, "traces", "graph*.json"),
        "profile": run.only("step.time", rank) is not None
        or (run.path / "traces" / "profile.json").is_file(),
        "data": bool(run.facts("loader", rank)) or _any(run.path, "data", "*.json"),
        "notes": (run.path / "notes.md").is_file(),
    }


def _any(run: Path, folder: str, pattern: str) -> bool:
    return next((run / folder).glob(pattern), None) is not None
