"""Answers from the other files in a run folder: graph, profile, data, notes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from clew.records import signals
from clew.records.codec import read
from clew.records.facts.loss_facts import LabelsFact
from clew.records.facts.model_facts import GraphRecordedFact, ModelFact
from clew.records.facts.step_facts import LoaderFact
from clew.records.network import Graph
from clew.records.signal_types import HISTOGRAM
from clew.records.step_costs import Profile
from clew.render.network.graph_layout import GraphLayout, layout_json
from clew.render.network.recorded_graph import read_graph
from clew.render.verdict_json import replace_file
from clew.web.answer_shapes import (
    SEVERITIES,
    DataAnswer,
    DataFile,
    FindingJson,
    GraphAnswer,
    GraphModel,
    GraphModule,
    ModelRow,
    ModuleHealth,
    NotesAnswer,
    ProfileAnswer,
    ViewsOffered,
)
from clew.web.answers.series_catalogue import SeriesEntry
from clew.web.responses import strict
from clew.web.runs.opened_run import OpenRun
from clew.web.runs.run_library import inside

LARGEST_FILE = 32 << 20  # bytes of a graph or profile
LARGEST_DATA = 4 << 20
MOST_FILES = 64
LARGEST_NOTES = 1 << 20
PARTS = (
    signals.TIME_DATA,
    signals.TIME_FORWARD,
    signals.TIME_BACKWARD,
    signals.TIME_OPTIMIZER,
    signals.TIME_REST,
    signals.TIME_CLEW,
)

NO_GRAPH = "the graph was not recorded; record it with: clew run --graph train.py"
NO_PROFILE = "the times above are recorded in every run; profile the steps with: clew profile train.py"
NO_DATA = "no samples or batches were recorded"


class TooLarge(ValueError):  # noqa: N818 - says what it is
    """Larger than a note may be."""


def json_file(run: Path, file: Path, limit: int) -> Any:
    """The contents of a file in the run; None if it is missing, not JSON, too large, or a link out."""
    try:
        if not file.is_file() or not inside(file, run) or file.stat().st_size > limit:
            return None
        return strict(json.loads(file.read_bytes()))
    except (OSError, ValueError, RecursionError):
        return None


def json_files(run: Path, folder: str, pattern: str, limit: int) -> list[tuple[str, Any]]:
    """Every such file in a folder of the run, by its stem."""
    try:
        files = sorted((run / folder).glob(pattern))[:MOST_FILES]
    except OSError:
        return []
    found = [(file.stem, json_file(run, file, limit)) for file in files]
    return [(name, content) for name, content in found if content is not None]


def graph_answer(run: OpenRun, rank: int, findings: Sequence[FindingJson]) -> GraphAnswer:
    graphs = [
        g for _, g in json_files(run.path, "traces", "graph*.json", LARGEST_FILE) if isinstance(g, dict)
    ]
    models = _models(run, rank)
    return {
        "models": models,
        "graphs": graphs,
        "layouts": [_layout(graph) for graph in graphs],
        "health": health(findings),
        "time": _module_times(run.path),
        "missing": None if graphs else _why_no_graph(run, rank),
    }


def _layout(graph: dict[str, Any]) -> GraphLayout | None:
    """The layout of a graph; None for a damaged file."""
    found = read_graph(graph)
    return _known_layout(found) if found is not None else None


@lru_cache(maxsize=4)
def _known_layout(graph: Graph) -> GraphLayout:
    """Cached: a graph does not change, and is requested whenever its run has grown."""
    return layout_json(graph)


def _why_no_graph(run: OpenRun, rank: int) -> str:
    """It was not requested, or is not available."""
    for fact in run.known(GraphRecordedFact, rank):
        if fact.reason:
            return f"the graph could not be recorded: {fact.reason}"
    return NO_GRAPH


def _models(run: OpenRun, rank: int) -> list[GraphModel]:
    newest = {model.root: model for model in run.known(ModelFact, rank)}
    found: list[GraphModel] = []
    for model in newest.values():
        parameters, trainable = Counter[str](), Counter[str]()  # by module
        for weight in model.parameters:
            parameters[weight.module] += weight.numel
            trainable[weight.module] += weight.numel if weight.requires_grad else 0
        modules: list[GraphModule] = [
            {
                "path": module.path,
                "class": module.kind,
                "file": module.file,
                "line": module.line,
                "order": at,
                "parameters": parameters[module.path],
                "trainable": trainable[module.path],
            }
            for at, module in enumerate(model.layers)
        ]
        found.append(
            {
                "root": model.root,
                "class": model.kind,
                "file": model.file,
                "line": model.line,
                "modules": modules,
            }
        )
    return found


def model_rows(run: OpenRun, rank: int) -> list[ModelRow]:
    """The models, one line each."""
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


def health(findings: Sequence[FindingJson]) -> dict[str, ModuleHealth]:
    """By module path, the checks with findings there, and the worst severity."""
    found: dict[str, ModuleHealth] = {}
    for finding in findings:
        module = finding["site"].get("module")
        if module:
            known = found.setdefault(module, {"severity": finding["severity"], "checks": []})
            known["severity"] = min(known["severity"], finding["severity"], key=SEVERITIES.index)
            known["checks"].append(finding["check"])
    return found


def _module_times(run: Path) -> dict[str, float] | None:
    profile = json_file(run, run / "traces" / "profile.json", LARGEST_FILE)
    costs = read(Profile, {"modules": profile.get("modules")}).modules if isinstance(profile, dict) else ()
    return {cost.module: cost.total for cost in costs} or None


def profile_answer(run: OpenRun, rank: int) -> ProfileAnswer:
    profile = json_file(run.path, run.path / "traces" / "profile.json", LARGEST_FILE)
    known = profile if isinstance(profile, dict) else None
    parts = [run.only(signal, rank) for signal in PARTS]
    total = run.only(signals.STEP_TIME, rank)
    return {
        "steps": {
            "unit": "s",
            "parts": [{"name": _part_name(entry), "key": entry.key} for entry in parts if entry is not None],
            "total": total.key if total is not None else None,
        },
        "profile": known,
        "missing": None if known is not None else NO_PROFILE,
    }


def _part_name(entry: SeriesEntry) -> str:
    """`forward`, of `time.forward`."""
    return entry.signal.removeprefix(f"{signals.TIMES.name}.")


def data_answer(run: OpenRun, rank: int) -> DataAnswer:
    found = json_files(run.path, "data", "*.json", LARGEST_DATA)
    files: list[DataFile] = [{"name": name, "content": content} for name, content in found]
    listed = zip(run.known(LabelsFact, rank), run.facts(LabelsFact, rank), strict=True)
    labels = {(known.kind, known.file, known.line): fact.data for known, fact in listed}
    shown = run.catalogue.search(rank=rank, hist=False)
    inputs = [entry.key for entry in shown if entry.known.group == signals.INPUTS]
    return {
        "files": files,
        "loaders": [strict(f.data) for f in run.facts(LoaderFact, rank)],
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
    """Write them to the run folder, atomically; a link in their place is replaced, not followed."""
    if len(words.encode(errors="replace")) > LARGEST_NOTES:
        raise TooLarge("notes are limited to 1 MB")
    replace_file(run / "notes.md", words)
    return read_notes(run)


def has(run: OpenRun, rank: int) -> ViewsOffered:
    """Which views have something to draw."""
    entries = [e for e in run.catalogue.entries.values() if e.rank == rank]
    layered = (signals.ACTIVATIONS, signals.GRADIENTS)
    return {
        "series": bool(entries),
        "layers": any(e.site.module is not None and e.known.group in layered for e in entries),
        "histograms": any(HISTOGRAM.fullmatch(e.signal) for e in entries),
        "graph": bool(run.facts(ModelFact, rank)) or _any(run.path, "traces", "graph*.json"),
        "profile": run.only(signals.STEP_TIME, rank) is not None
        or (run.path / "traces" / "profile.json").is_file(),
        "data": bool(run.facts(LoaderFact, rank)) or _any(run.path, "data", "*.json"),
        "notes": (run.path / "notes.md").is_file(),
    }


def _any(run: Path, folder: str, pattern: str) -> bool:
    return next((run / folder).glob(pattern), None) is not None
