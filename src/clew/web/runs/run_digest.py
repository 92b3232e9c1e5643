"""The digest of a run: its verdict, the code of each finding, and what a list of runs shows of it.

Reads the whole log. Code is read from the source saved with the run, never from this machine's files: a run
may come from anywhere, and a path in it may name anything.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from clew.checks.run_view import RunView
from clew.checks.runner import judge
from clew.records import signals
from clew.records.facts.fact import TypedFact
from clew.records.facts.run_facts import ConfigFact
from clew.records.facts.step_facts import LoaderFact, OptimizerFact
from clew.records.finding import Finding
from clew.render import verdict_json
from clew.render.run_summary import summarise
from clew.store.read.run_data import RunData
from clew.store.read.run_errors import EmptyRun
from clew.store.read.run_reader import open_run
from clew.web.responses import strict
from clew.web.runs.digest_cache import RunDigest

F = TypeVar("F", bound=TypedFact)

METRIC_PREFIX = signals.METRIC.member("")
LONGEST_VALUE = 200  # characters of a hyperparameter; the whole is in the run's configuration


def digest(path: Path) -> RunDigest:
    """Everything that needs the whole log."""
    try:
        run = open_run(path)
    except EmptyRun as error:
        return RunDigest("none", str(error), steps=0)
    verdict = judge(RunView(run.data, run.ranks))
    summary = summarise(run, checks=verdict.asked)
    idle = summary.idle is not None and not verdict.findings
    sources = Sources.read(path)
    return RunDigest(
        state="none" if idle else "ready",
        error=summary.idle,
        steps=summary.steps,
        verdict=json.loads(verdict_json.dumps(verdict_json.verdict_json(verdict, summary))),
        links=tuple(sources.of_finding(finding) for finding in verdict.findings),
        pages={finding.check: page_of(finding) for finding in verdict.findings},
        hparams=strict(hyperparameters(run.data)),
        metrics=strict(last_metrics(run.data)),
    )


def page_of(finding: Finding) -> dict[str, str]:
    """The documentation of the check that reported; one of the user's checks may have none here."""
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
    """The configuration, flattened; optimizer and loader settings where nothing else has them."""
    found: dict[str, Any] = {}
    for config in _facts(data, ConfigFact):
        found.update(flat(config.values))
    for name, value in _observed(data).items():
        found.setdefault(name, value)
    return found


def _facts(data: RunData, kind: type[F]) -> list[F]:
    return [kind.read(fact.data, fact.step) for fact in data.facts if fact.kind == kind.fact_kind]


def _observed(data: RunData) -> dict[str, Any]:
    """Of the first optimizer and the first loader."""
    found: dict[str, Any] = {}
    for optimizer in _facts(data, OptimizerFact)[:1]:
        found["optimizer"] = optimizer.kind
        for group in optimizer.groups[:1]:
            found |= {"optimizer.lr": group.lr, "optimizer.weight_decay": group.weight_decay}
    for loader in _facts(data, LoaderFact)[:1]:
        found["loader.batch_size"] = loader.batch_size
    return found


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings with their names joined by dots; lists and similar values as short text."""
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
        if signal.startswith(METRIC_PREFIX):
            found[signal.removeprefix(METRIC_PREFIX)] = _last(data, signal, None)
    evaluated = _last(data, signals.LOSS.name, "eval")
    return found if evaluated is None else {**found, "loss (eval)": evaluated}


def _last(data: RunData, signal: str, phase: str | None) -> float | None:
    newest: tuple[int, float] | None = None
    for site, steps, values in data.series(signal):
        if len(values) and (phase is None or site.phase == phase):
            last = (int(steps[-1]), float(values[-1]))
            newest = last if newest is None or last[0] >= newest[0] else newest
    return newest[1] if newest is not None and math.isfinite(newest[1]) else None


# ---- the code of a finding -------------------------------------------------------------------

AROUND = 4  # lines shown above and below
LARGEST_SOURCES = 8 << 20
CALL = re.compile(r"#\s*(before|after)\s+(?:[\w.]*\.)?(\w+)(\(\))?")
INSTEAD = re.compile(
    r"(?P<new>(?P<name>[A-Za-z_]\w*)=(?P<value>[-+.\deE]+))\s+#\s*instead of (?P<old>[-+.\deE]+)"
)
MADE = re.compile(
    r"(?:nn\.)?(?P<name>[A-Z]\w*)\((?P<value>[-+.\deE]+)\)\s+#\s*instead of (?P<old>[-+.\deE]+)"
)

Diff = list[dict[str, Any]]


class Sources:
    """The source files saved with a run."""

    def __init__(self, files: dict[str, str]) -> None:
        self._lines = {name: text.splitlines() for name, text in files.items()}

    @classmethod
    def read(cls, run: Path) -> Sources:
        file = run / "source.json"
        try:
            if file.is_symlink() or file.stat().st_size > LARGEST_SOURCES:
                return cls({})
            files = json.loads(file.read_bytes())["files"]
            return cls({str(k): v for k, v in files.items() if isinstance(v, str)})
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return cls({})

    def of_finding(self, finding: Finding) -> dict[str, Any]:
        """`code` and `diff`, each None if not known."""
        return {"code": self._code(finding), "diff": self._diff(finding)}

    def _code(self, finding: Finding) -> dict[str, Any] | None:
        lines, line = self._lines.get(finding.site.file or ""), finding.site.line
        if lines is None or line is None or not 1 <= line <= len(lines):
            return None
        first = max(1, line - AROUND)
        shown = lines[first - 1 : line + AROUND]
        return {"file": finding.site.file, "line": line, "first": first, "lines": shown}

    def _diff(self, finding: Finding) -> Diff | None:
        lines = self._lines.get(finding.site.file or "")
        if lines is None:
            return None
        near = finding.site.line or 1
        return inserted(lines, near, as_named(finding.fix, lines, near)) or replaced(lines, finding.fix)


def as_named(fix: str, lines: list[str], near: int) -> str:
    """The fix with the user's own name for the optimizer; empty if that is not known."""
    head = re.match(r"(optimizer|loss|scheduler|model)\.\w+\(", fix)
    if head is None or any(re.search(rf"\b{head[1]}\b", line) for line in lines):
        return fix
    line = lines[near - 1] if near <= len(lines) else ""
    own = re.search(r"\b([A-Za-z_][\w.]*)\.step\(\s*\)", line) if head[1] == "optimizer" else None
    return own[1] + fix[len(head[1]) :] if own else ""


def inserted(lines: list[str], near: int, fix: str) -> Diff | None:
    """`optimizer.zero_grad()  # before loss.backward()`: inserted before the nearest such call."""
    code, found = fix.partition("#")[0].strip(), CALL.search(fix)
    if not code or found is None or not (found[3] or found[2].endswith("_")) or "…" in code or "..." in code:
        return None
    call = re.compile(rf"\b{re.escape(found[2])}\(")
    hits = [n for n, line in enumerate(lines, 1) if call.search(line.partition("#")[0])]
    if not hits:
        return None
    at = min(hits, key=lambda n: abs(n - near))
    indent = lines[at - 1][: len(lines[at - 1]) - len(lines[at - 1].lstrip())]
    place = at if found[1] == "before" else at + 1
    return _with_context(lines, place, removed=0, added=[indent + code])


def replaced(lines: list[str], fix: str) -> Diff | None:
    """`lr=0.01  # instead of 1`: on the only line that says so."""
    found = INSTEAD.match(fix) or MADE.match(fix)
    if found is None:
        return None
    opener, between = (r"\b", r"\s*=\s*") if found.re is INSTEAD else (r"\b", r"\(\s*(?:p\s*=\s*)?")
    old = re.compile(rf"({opener}{re.escape(found['name'])}{between})([-+.\deE]+)")
    found_at = [(n, old.search(line)) for n, line in enumerate(lines, 1)]
    hits = [(n, hit) for n, hit in found_at if hit is not None and _equal(hit[2], found["old"])]
    if len(hits) != 1:
        return None
    line, hit = hits[0]
    text = lines[line - 1]
    new = text[: hit.start(2)] + found["value"] + text[hit.end(2) :]
    return _with_context(lines, line, removed=1, added=[new])


def _equal(given: str, wanted: str) -> bool:
    try:
        return abs(float(given) - float(wanted)) <= 1e-3 * abs(float(wanted))
    except ValueError:
        return False


def _with_context(lines: list[str], at: int, *, removed: int, added: list[str]) -> Diff:
    """A change at a line, with two lines of context on either side; added lines have no number."""
    before = range(max(1, at - 2), at)
    gone = range(at, at + removed)
    after = range(at + removed, min(len(lines), at + removed + 1) + 1)
    return [
        *({"line": n, "mark": " ", "text": lines[n - 1]} for n in before),
        *({"line": n, "mark": "-", "text": lines[n - 1]} for n in gone),
        *({"line": None, "mark": "+", "text": text} for text in added),
        *({"line": n, "mark": " ", "text": lines[n - 1]} for n in after if n <= len(lines)),
    ]
