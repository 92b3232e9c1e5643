"""EXP045 nondeterministic-step

## What it detects
A step that gives different numbers when it is run again from the same state, with the same batch and the
same seeds for torch, NumPy and Python. The finding names the first operation whose result differs. The
check also gives a hint about the program's own random generators, and about state in plain attributes
that makes the second call differ from the first.

## Why is this bad?
Runs that can't be reproduced can't be compared: you can't tell whether a change helped or the random
numbers differed, and you can't debug a rare failure.

## How to fix
Use the generators that a seed controls: `torch.randn_like(x)` instead of
`np.random.default_rng().normal(…)`. Don't let results depend on the time, on memory addresses or on the
order of a set. Keep state that matters in buffers (`register_buffer`).

## Known problems
Tiny differences are normal on GPUs, where the order of sums varies: they are only a hint.

## References
- PyTorch docs, Reproducibility.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.experiment_outcome import op_name
from clew.checks.run_view import RunView
from clew.checks.wording import listed
from clew.records.facts.experiment_facts import NO_PLACE
from clew.records.facts.network_experiment_facts import NondeterministicStepFact
from clew.records.finding import Evidence, Finding, Severity
from clew.records.site import Site


@dataclass(frozen=True)
class NondeterministicStep(Check):
    id = "EXP045"
    name = "nondeterministic-step"
    rank = 1460
    needs = (NondeterministicStepFact,)

    relative: float = 1e-5  # difference of the losses; another order of sums gives less in single precision

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        found = run.outcome(NondeterministicStepFact)
        if found is None or found.kind == "same":
            return
        site = (found.place or NO_PLACE).site
        message, fix, severity = self._describe(run, found, site)
        first, second = found.losses
        what = "the loss" if found.whole else "the mean of the model's output"
        yield self.finding(
            severity,
            message=message,
            fix=fix,
            site=site,
            step=0,
            evidence=Evidence(f"{what} is {first:.9g}, then {second:.9g}"),
            confidence="certain" if severity is Severity.WARNING else "possible",
        )

    def _describe(
        self, run: RunView, found: NondeterministicStepFact, site: Site
    ) -> tuple[str, str, Severity]:
        where = f"{op_name(run, site)} gives a different result" if site.op else "the gradients differ"
        if found.kind == "generator":
            owned = listed(found.generators)
            return (
                f"the step uses its own random generator ({owned}), which torch.manual_seed does not control",
                "use torch's generator, or seed this one and save its state with checkpoints",
                Severity.ADVICE,
            )
        if found.kind == "kept":
            return (
                f"the same step gives a different result the second time: {where}; some state "
                "is kept in an attribute",
                'self.register_buffer("state", …)  # if it should be kept: checkpoints then contain it',
                Severity.ADVICE,
            )
        large = found.relative > self.relative
        return (
            f"the same step from the same state and seeds gives different numbers: {where}",
            "use generators that a seed controls: torch.randn_like(x), not np.random.default_rng()",
            Severity.WARNING if large else Severity.ADVICE,
        )
