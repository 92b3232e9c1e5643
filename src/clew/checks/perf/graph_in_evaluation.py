"""PERF011 graph-in-evaluation

## What it detects
Evaluation that builds an autograd graph: the model runs in evaluation mode with gradients enabled, and
no backward pass follows.

## Why is this bad?
Everything that a backward pass would need is kept until the output is freed: as much memory as in training,
for nothing. Operations take longer, and outputs that you keep (a list of losses, say) keep their graphs.

## How to fix
Put the evaluation under `with torch.no_grad():`, or `@torch.no_grad()` on its function;
`torch.inference_mode()` is a little faster still.

## Known problems
The gain is mainly in memory; a gain in time is given only where `clew profile --try` has measured it. An
evaluation that takes next to no time is not reported.

## References
- PyTorch docs, autograd mechanics: locally disabling gradient computation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.speed_gains import attempts, expected, gain_of, helped, size, times
from clew.checks.run_view import RunView
from clew.records.facts.document_facts import ProfileFact
from clew.records.facts.profile_facts import EvaluationGraphFact
from clew.records.finding import Evidence, Finding, Severity
from clew.records.plural import counted
from clew.records.site import Site
from clew.records.tried_changes import NO_GRADIENTS


@dataclass(frozen=True)
class GraphInEvaluation(Check):
    id = "PERF011"
    name = "graph-in-evaluation"
    needs = (ProfileFact,)
    confidence = "certain"

    share: float = 0.02  # of the run that evaluation must take to matter
    large: int = 1 << 26  # bytes kept for a backward pass that matter in any case

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        profile = run.profile()
        kept = profile.memory.kinds.get("activations", 0) if profile is not None else 0
        for fact in run.known(EvaluationGraphFact):
            share = fact.seconds / max(fact.run, 1e-9)
            if share >= self.share or kept >= self.large:
                yield self._finding(run, fact, kept, share)

    def _finding(self, run: RunView, fact: EvaluationGraphFact, kept: int, share: float) -> Finding:
        holds = f" and keeps about {size(kept)} of each batch" if kept else ""
        sections = counted(fact.sections or 1, "time")
        evidence = [Evidence(f"gradients are enabled in evaluation, {sections}; no backward pass followed")]
        evidence += [Evidence(f"evaluation takes {share:.0%} of the run")] if share >= self.share else []
        faster = next((a for a in attempts(run, NO_GRADIENTS) if helped(a)), None)
        gained = ""
        if faster is not None:
            gain = gain_of(faster.gain)
            gained = f"; without it, evaluation would be {times(gain)} as fast"
            evidence.insert(0, expected(gain, "in evaluation", measured=True))
        return self.finding(
            Severity.ADVICE,
            message=f"evaluation builds a graph{holds} for a backward pass that never comes{gained}",
            fix="with torch.no_grad(): around the evaluation, or @torch.no_grad() on its function",
            site=Site("", None, fact.file, fact.line, "eval", fact.root),
            evidence=evidence,
        )
