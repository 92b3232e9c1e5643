"""What experiments with fixes mean for the findings: confirmed, weakened, or withdrawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from clew.checks.evidence.recorded_facts import text, whole
from clew.checks.run_view import RunView
from clew.records.finding import Finding, Proof, Severity

_WEAKER = {Severity.ERROR: Severity.WARNING, Severity.WARNING: Severity.ADVICE}


def read(data: Mapping[str, Any]) -> tuple[str, Proof] | None:
    """The check that a `proof` fact is about, and the proof; None if it can't be read."""
    check, fix = text(data.get("check")), text(data.get("fix"))
    steps, seeds = whole(data.get("steps")), whole(data.get("seeds"))
    before, after = number(data.get("before")), number(data.get("after"))
    if check is None or fix is None or steps is None or before is None or after is None:
        return None
    spreads = [_pair(data.get("before_spread"), before), _pair(data.get("after_spread"), after)]
    gained = data.get("helped")
    helped = gained if isinstance(gained, bool) else None
    return check, Proof(fix, steps, seeds or 0, before, after, spreads[0], spreads[1], helped)


def number(value: object) -> float | None:
    """A number as `json_float` wrote it."""
    if isinstance(value, str) and value in ("nan", "inf", "-inf"):
        return float(value)
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _pair(value: object, otherwise: float) -> tuple[float, float]:
    numbers = [number(v) for v in value] if isinstance(value, (list, tuple)) else []
    low, high = numbers if len(numbers) == 2 else (None, None)
    return (otherwise if low is None else low, otherwise if high is None else high)


def proven(findings: Sequence[Finding], run: RunView) -> tuple[list[Finding], list[str]]:
    """The findings with their proofs, and the names of those that an experiment has withdrawn."""
    proofs = dict(pair for f in run.facts("proof") if (pair := read(f.data)) is not None)
    kept: list[Finding] = []
    withdrawn: list[str] = []
    for finding in findings:
        proof = proofs.get(finding.check)
        changed = finding if proof is None else _with(finding, proof)
        if changed is None:
            withdrawn.append(finding.check)
        else:
            kept.append(changed)
    return kept, withdrawn


def _with(finding: Finding, proof: Proof) -> Finding | None:
    """A fix that helps makes it certain; one that does not help makes a guess weaker or ends it."""
    if proof.helped is None:
        return finding
    if proof.helped:
        return replace(finding, proof=proof, confidence="certain")
    if finding.confidence == "certain":  # seen directly: a fault even if this experiment does not show it
        return replace(finding, proof=proof)
    weaker = _WEAKER.get(finding.severity)
    return None if weaker is None else replace(finding, proof=proof, severity=weaker, confidence="possible")
