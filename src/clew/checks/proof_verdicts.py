"""What experiments with fixes mean for the findings: confirmed, weakened, or withdrawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from clew.checks.run_view import RunView
from clew.records.facts.run_facts import ProofFact
from clew.records.finding import Finding, Proof, Severity

_WEAKER = {Severity.ERROR: Severity.WARNING, Severity.WARNING: Severity.ADVICE}


def proof_of(fact: ProofFact) -> Proof | None:
    """The result of the experiment; None if it was refused, or is damaged."""
    before, after = _loss(fact.before), _loss(fact.after)
    if not fact.check or fact.fix is None or fact.steps is None or before is None or after is None:
        return None
    spreads = _spread(fact.before_spread, before), _spread(fact.after_spread, after)
    return Proof(fact.fix, fact.steps, fact.seeds or 0, before, after, *spreads, fact.helped)


def _loss(value: object) -> float | None:
    """A number as `json_float` wrote it."""
    if isinstance(value, str) and value in ("nan", "inf", "-inf"):
        return float(value)
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _spread(recorded: tuple[Any, ...] | None, otherwise: float) -> tuple[float, float]:
    """The lowest and the highest loss over the seeds."""
    numbers = [_loss(value) for value in recorded or ()]
    low, high = numbers if len(numbers) == 2 else (None, None)
    return (otherwise if low is None else low, otherwise if high is None else high)


def proven(findings: Sequence[Finding], run: RunView) -> tuple[list[Finding], list[str]]:
    """The findings with their proofs, and the names of those that an experiment has withdrawn."""
    proofs = {fact.check: proof for fact in run.known(ProofFact) if (proof := proof_of(fact)) is not None}
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
