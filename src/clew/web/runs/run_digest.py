"""The digest of a run: its verdict, and what a list of runs shows of it. Reads the whole log."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from clew.checks.run_view import RunView
from clew.checks.runner import judge
from clew.records.finding import Finding
from clew.render import verdict_json
from clew.render.run_summary import summarise
from clew.store.read.run_data import RunData
from clew.store.read.run_errors import EmptyRun
from clew.store.read.run_reader import open_run
from clew.web.answers.finding_source import Sources
from clew.web.strict_json import strict

LONGEST_VALUE = 200  # characters of a hyperparameter; the whole is in the run's configuration


def digest(path: Path) -> dict[str, Any]:
    """Everything that needs the whole log, as JSON."""
    try:
        run = open_run(path)
    except EmptyRun as error:
        return {"state": "none", "error": str(error), "verdict": None, "steps": 0}
    verdict = judge(RunView(run.data, run.ranks))
    summary = summarise(run, checks=verdict.asked)
    idle = summary.idle is not None and not verdict.findings
    sources = Sources.read(path)
    return {
        "state": "none" if idle else "ready",
        "error": summary.idle,
        "steps": summary.steps,
        "verdict": json.loads(verdict_json.dumps(verdict_json.verdict_json(verdict, summary))),
        "links": [sources.of_finding(finding) for finding in verdict.findings],
        "pages": {finding.check: page_of(finding) for finding in verdict.findings},
        "hparams": strict(hyperparameters(run.data)),
        "metrics": strict(last_metrics(run.data)),
    }


def page_of(finding: Finding) -> dict[str, str]:
    """The documentation of the check that spoke; a check of the user's own may have none here."""
    from clew.checks import catalog
    from clew.checks.base import SECTIONS, UnknownCheck, sections, summary

    try:
        kind = type(catalog.find(finding.check))
    except UnknownCheck:
        return {"id": finding.id, "title": finding.check, "text": ""}
    parts = sections(kind)
    body = [f"## {name}\n\n{parts[name]}" for name in SECTIONS if parts.get(name)]
    return {"id": finding.id, "title": summary(kind), "text": "\n\n".join(body)}


def hyperparameters(data: RunData) -> dict[str, Any]:
    """What was configured, flat; the optimizer's and the loader's settings where nothing else says them."""
    found: dict[str, Any] = {}
    for fact in data.facts:
        if fact.kind == "config" and isinstance(fact.data.get("values"), dict):
            found.update(flat(fact.data["values"]))
    for name, value in _observed(data).items():
        found.setdefault(name, value)
    return found


def _observed(data: RunData) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for fact in data.facts:
        if fact.kind == "optimizer" and "optimizer" not in found:
            groups = fact.data.get("groups")
            group = groups[0] if isinstance(groups, list) and groups and isinstance(groups[0], dict) else {}
            found["optimizer"] = fact.data.get("class")
            found.update({f"optimizer.{k}": group.get(k) for k in ("lr", "weight_decay") if k in group})
        elif fact.kind == "loader" and "loader.batch_size" not in found:
            found["loader.batch_size"] = fact.data.get("batch_size")
    return found


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings with their names joined by dots; lists and the like as short text."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, dict) and value:
            found.update(flat(value, f"{prefix}{name}."))
        elif value is None or isinstance(value, (bool, int, float)):
            found[f"{prefix}{name}"] = value
        else:
            text = value if isinstance(value, str) else json.dumps(value, default=str)
            found[f"{prefix}{name}"] = text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 1] + "…"
    return found


def last_metrics(data: RunData) -> dict[str, float | None]:
    """The last finite value of every metric, and of the evaluation loss."""
    found: dict[str, float | None] = {}
    for signal in data.signal_names():
        if signal.startswith("metric."):
            found[signal.removeprefix("metric.")] = _last(data, signal, None)
    evaluated = _last(data, "loss", "eval")
    return found if evaluated is None else {**found, "loss (eval)": evaluated}


def _last(data: RunData, signal: str, phase: str | None) -> float | None:
    newest: tuple[int, float] | None = None
    for site, steps, values in data.series(signal):
        if len(values) and (phase is None or site.phase == phase):
            last = (int(steps[-1]), float(values[-1]))
            newest = last if newest is None or last[0] >= newest[0] else newest
    return newest[1] if newest is not None and math.isfinite(newest[1]) else None
