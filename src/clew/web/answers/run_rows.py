"""Runs as rows of a list, and one run in detail."""

from __future__ import annotations

import shlex
from pathlib import PurePath
from typing import Any, cast

from clew.records.facts.run_facts import ConfigFact, GitFact
from clew.records.signal_types import HEADROOM
from clew.records.site import Site
from clew.store.index.series_index import site_key
from clew.store.read.run_metadata import RunMeta
from clew.web.answer_shapes import (
    SEVERITIES,
    EvidenceJson,
    EvidenceLink,
    FindingLinks,
    RunBrief,
    RunDetail,
    RunRow,
    StateWord,
    VerdictCells,
    VerdictWord,
)
from clew.web.answers.run_files import has, model_rows
from clew.web.answers.series_catalogue import series_key, site_id
from clew.web.answers.series_points import axes_offered
from clew.web.responses import strict
from clew.web.runs.digest_cache import RunDigest
from clew.web.runs.judge_process import Judgement
from clew.web.runs.opened_run import OpenRun
from clew.web.runs.run_library import Glance

MOST_EVENTS = 500


def row(name: str, glance: Glance, judged: Judgement) -> RunRow:
    """One row of the list of runs."""
    info, meta = glance.info, glance.meta
    if info is None:
        return _unreadable(name, glance)
    ended = info.started + info.duration if info.started is not None and info.duration is not None else None
    found: RunRow = {
        "id": name,
        "name": meta.name or PurePath(meta.script or name).stem,
        "state": cast(StateWord, info.state),
        "error": None,
        "started": info.started,
        "ended": ended if info.state != "running" else None,
        "duration": info.duration,
        "steps": info.steps,
        "script": info.script or None,
        "command": _command(meta),
        "host": meta.hostname,
        "user": meta.user,
        "hparams": dict(judged.digest.hparams),
        "last_loss": info.last_loss,
        "metrics": dict(judged.digest.metrics),
        "ranks": 1 if meta.world_size is None else meta.world_size,
        **_verdict_cells(judged),
        "damage": damage(glance, judged),
        "version": glance.version,
    }
    return cast(RunRow, strict(found))


def brief(row: RunRow) -> RunBrief:
    """The fields of a row that change."""
    return {
        "id": row["id"],
        "state": row["state"],
        "steps": row["steps"],
        "version": row["version"],
        "verdict": row["verdict"],
    }


def damage(glance: Glance, judged: Judgement) -> list[str]:
    """What could not be read, at a glance and when the whole log was read."""
    found = glance.info.damage if glance.info else ()
    return list(dict.fromkeys([*found, *judged.digest.damage]))


def _unreadable(name: str, glance: Glance) -> RunRow:
    """Only the reason is known."""
    return {
        "id": name,
        "name": None,
        "state": "unreadable",
        "error": glance.error,
        "started": None,
        "ended": None,
        "duration": None,
        "steps": None,
        "script": None,
        "command": None,
        "host": None,
        "user": None,
        "hparams": None,
        "last_loss": None,
        "metrics": None,
        "ranks": None,
        "verdict": None,
        "worst": None,
        "root_cause": None,
        "findings": None,
        "damage": None,
        "version": glance.version,
    }


def _command(meta: RunMeta) -> str | None:
    if not isinstance(meta.command, tuple):
        return meta.command
    parts = list(meta.command)
    if len(parts) > 1 and PurePath(parts[1]).parts[-2:] in (("clew", "__main__.py"), ("bin", "clew")):
        parts = ["clew", *parts[2:]]  # as it was typed, or might have been
    return shlex.join(parts)


def _verdict_cells(judged: Judgement) -> VerdictCells:
    """Severity and root cause, once there is a verdict."""
    state = verdict_state(judged)
    cells: VerdictCells = {"verdict": state, "worst": None, "root_cause": None, "findings": None}
    if state != "ready" or not judged.digest.verdict:
        return cells
    findings = judged.digest.findings
    counts = {s: sum(f["severity"] == s for f in findings) for s in SEVERITIES}
    root = next((f for f in findings if not f["because"]), None)
    cells["findings"] = {"error": counts["error"], "warning": counts["warning"], "advice": counts["advice"]}
    cells["worst"] = next((s for s in SEVERITIES if counts[s]), None)
    if root is not None:
        cells["root_cause"] = {
            "check": root["check"],
            "severity": root["severity"],
            "message": root["message"],
        }
    return cells


def verdict_state(judged: Judgement) -> VerdictWord:
    return cast(VerdictWord, judged.digest.state)


def detail(name: str, glance: Glance, judged: Judgement, run: OpenRun, rank: int) -> RunDetail:
    """Everything about one run except its series."""
    git = run.known(GitFact, rank)
    digest = judged.digest
    return {
        "run": row(name, glance, judged),
        "meta": strict(run.meta.recorded),
        "versions": strict(run.versions(rank)),
        "git": strict(git[-1].to_json()) if git else None,
        "config": [
            {"source": fact.source, "step": fact.step, "values": strict(fact.values)}
            for fact in run.known(ConfigFact, rank)
        ],
        "verdict": digest.verdict,
        "verdict_state": verdict_state(judged),
        "verdict_error": digest.error,
        "verdict_steps": digest.steps,
        "links": links(digest, run, rank),
        "pages": dict(digest.pages),
        "events": [
            {"kind": e.kind, "step": e.step, "data": strict(e.data)} for e in run.events(rank)[-MOST_EVENTS:]
        ],
        "axes": axes_offered(run, rank),
        "models": model_rows(run, rank),
        "has": has(run, rank),
        "ranks": run.ranks,
        "damage": damage(glance, judged),
        "incidents": digest.incidents,
    }


def links(digest: RunDigest, run: OpenRun, rank: int) -> list[FindingLinks]:
    """Where each finding is shown: lines of code, series, layers."""
    code = digest.links
    found: list[FindingLinks] = []
    for at, finding in enumerate(digest.findings):
        evidence = [_evidence_link(item, run, rank) for item in finding["evidence"]]
        source = code[at] if at < len(code) else {"code": None, "diff": None}
        found.append(
            {
                "code": source["code"],
                "diff": source["diff"],
                "evidence": evidence,
                "site": next((e["site"] for e in evidence if e["site"]), None),
                "module": finding["site"].get("module"),
                "page": digest.pages.get(finding["check"], {}).get("text"),
            }
        )
    return found


def _evidence_link(item: EvidenceJson, run: OpenRun, rank: int) -> EvidenceLink:
    if not item["signal"] or item["site"] is None:
        return {"key": None, "site": None}
    at = site_key(Site.from_json(cast("dict[str, Any]", item["site"])))
    key = series_key(rank, item["signal"], at)
    known = key in run.catalogue.entries
    derived = item["signal"].endswith(f".{HEADROOM}")  # computed from others, and mapped by layer
    return {"key": key if known else None, "site": site_id(at) if known or derived else None}
