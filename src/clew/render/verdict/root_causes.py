"""Groups findings that share a cause under that cause."""

from __future__ import annotations

from collections.abc import Iterable

from clew.records.finding import Finding

Group = tuple[Finding, list[Finding]]


def effects_by_root(findings: Iterable[Finding]) -> list[Group]:
    """Each root cause with all that follows from it, directly or through others, in the verdict's order."""
    found = list(findings)
    by_id = {finding.id: finding for finding in reversed(found)}
    rooted = [(finding, _root_of(finding, by_id)) for finding in found]
    groups: dict[int, Group] = {id(finding): (finding, []) for finding, root in rooted if root is finding}
    for finding, root in rooted:
        if root is not finding:
            groups[id(root)][1].append(finding)
    return list(groups.values())


def _root_of(finding: Finding, by_id: dict[str, Finding]) -> Finding:
    passed = {finding.id}
    current = finding
    while True:
        cause = next((by_id[i] for i in current.because if i in by_id), None)
        if cause is None:
            return current
        if cause.id in passed:  # a circle has no root: each stands for itself
            return finding
        passed.add(cause.id)
        current = cause
