"""Asks every check about a run and puts the answers in an order that a person can use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from clew.checks import catalog
from clew.checks.api import Check
from clew.checks.causes import folded
from clew.checks.view import RunView
from clew.checks.wording import listed
from clew.records import Evidence, Finding, NotJudged, Site, Verdict

MOST_OTHERS = 8  # further places listed one by one, to keep a finding on one screen


def judge(run: RunView, *, checks: Iterable[Check] | None = None, ignore: Iterable[str] = ()) -> Verdict:
    """Everything the checks say about the run as it is now.

    `ignore` holds names or ids; one that no check has raises `UnknownCheck`. Nothing else does:
    a check that fails is not judged.
    """
    ignored = {catalog.find(name).name for name in ignore}
    findings: list[Finding] = []
    not_judged: list[NotJudged] = []
    for check in catalog.everything() if checks is None else checks:
        if check.name in ignored:
            continue
        found, reason = _ask(check, run)
        if found:
            findings.append(merged([_located(run, f) for f in found]))
        elif reason:
            not_judged.append(NotJudged(check.name, reason))
    return Verdict(tuple(folded(findings)), tuple(not_judged))


def _ask(check: Check, run: RunView) -> tuple[list[Finding], str | None]:
    missing = [need for need in check.needs if not run.has(need)]
    if missing:
        return [], f"{listed([_readable(need) for need in missing])} was not recorded"
    try:
        with np.errstate(all="ignore"):
            found = list(check.diagnose(run))
            return found, None if found else check.unjudged(run)
    except Exception as error:  # noqa: BLE001 - a faulty check must not take the others down
        return [], f"the check failed: {type(error).__name__}: {error}"


def _readable(need: str) -> str:
    return need.replace("|", " or ").replace("fact:", "fact ")


def _located(run: RunView, finding: Finding) -> Finding:
    """Sites with the names and source lines that a user knows."""
    evidence = tuple(replace(e, site=run.locate(e.site)) if e.site else e for e in finding.evidence)
    return replace(finding, site=run.locate(finding.site), evidence=evidence)


def merged(findings: Sequence[Finding]) -> Finding:
    """One finding for all places of the same fault: the worst leads, the others become evidence."""
    order = sorted(range(len(findings)), key=lambda n: (findings[n].severity.rank, n))
    lead, others = findings[order[0]], [findings[n] for n in order[1:]]
    if not others:
        return lead
    places = listed([_place(f.site) for f in others], 3)
    steps = [f.step for f in findings if f.step is not None]
    return replace(
        lead,
        message=f"{lead.message} (and so: {places})",
        step=min(steps, default=None),
        evidence=(*lead.evidence, *_also(others)),
    )


def _also(others: Sequence[Finding]) -> list[Evidence]:
    listed_one_by_one = [
        replace(f.evidence[0], text=f"also: {f.message}", site=f.site)
        if f.evidence
        else Evidence(f"also: {f.message}", site=f.site)
        for f in others[:MOST_OTHERS]
    ]
    rest = others[MOST_OTHERS:]
    if rest:
        listed_one_by_one.append(Evidence(f"and in {listed([_place(f.site) for f in rest], 40)}"))
    return listed_one_by_one


def _place(site: Site) -> str:
    if site.module is not None:
        return f"{site.module}.{site.param}" if site.param else site.module
    return f"{site.file}:{site.line}" if site.file else site.op or "elsewhere"
