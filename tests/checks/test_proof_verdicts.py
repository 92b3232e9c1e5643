"""An experiment with the fix confirms a finding, weakens it, or withdraws it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from fake_run import FakeRun

from clew.checks.proof_verdicts import proof_of, proven
from clew.records.facts.run_facts import ProofFact
from clew.records.finding import Finding, Proof, Severity

PROOF = Proof("zero the gradients", 30, 3, 2.3, 0.41, (2.2, 2.4), (0.4, 0.5), True)
FINDING = Finding("missing-zero-grad", "OPT001", Severity.ERROR, "they pile up", "zero them")


def judged(finding: Finding, **changes: Any) -> tuple[list[Finding], list[str]]:
    data = {"check": finding.check, **replace(PROOF, **changes).to_json()}
    return proven([finding], FakeRun().fact("proof", 0, **data).view())


def test_a_fix_that_helps_makes_the_finding_certain() -> None:
    (found,), withdrawn = judged(FINDING)
    assert (found.confidence, found.severity, withdrawn) == ("certain", Severity.ERROR, [])
    assert found.proof == PROOF
    assert "0.41 instead of 2.3" in PROOF.sentence


@pytest.mark.parametrize(
    ("severity", "weaker"), [(Severity.ERROR, Severity.WARNING), (Severity.WARNING, Severity.ADVICE)]
)
def test_a_fix_that_does_not_help_makes_a_guess_weaker(severity: Severity, weaker: Severity) -> None:
    (found,), _ = judged(replace(FINDING, severity=severity), helped=False)
    assert (found.severity, found.confidence) == (weaker, "possible")
    assert found.proof is not None
    assert "did not help" in found.proof.sentence


def test_a_hint_whose_fix_does_not_help_is_withdrawn() -> None:
    found, withdrawn = judged(replace(FINDING, severity=Severity.ADVICE), helped=False)
    assert (found, withdrawn) == ([], ["missing-zero-grad"])


def test_what_was_seen_directly_stays_though_a_trial_does_not_show_it() -> None:
    (found,), _ = judged(replace(FINDING, confidence="certain"), helped=False)
    assert found.severity is Severity.ERROR


def test_a_trial_that_tells_nothing_changes_nothing() -> None:
    assert judged(FINDING, helped=None) == ([FINDING], [])


def test_the_proof_of_another_check_is_not_this_one() -> None:
    other = {"check": "dead-units", **PROOF.to_json()}
    assert proven([FINDING], FakeRun().fact("proof", 0, **other).view()) == ([FINDING], [])


def test_a_proof_survives_being_written_down_with_infinite_losses() -> None:
    proof = replace(PROOF, before=float("inf"), before_spread=(1.0, float("inf")))
    assert proof_of(ProofFact.read({"check": "x", **proof.to_json()})) == proof


@pytest.mark.parametrize("damage", [{"steps": "many"}, {"before": None}, {"fix": 3}, {"check": None}])
def test_a_damaged_proof_is_not_read(damage: dict[str, Any]) -> None:
    assert proof_of(ProofFact.read({"check": "x", **PROOF.to_json(), **damage})) is None
