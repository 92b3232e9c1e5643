"""PERF012 optimizer-per-parameter

## What it detects
An optimizer that updates many small parameters one by one, in Python, and takes a noticeable share of
the step: `foreach=False`, the default on a CPU, or a custom optimizer.

## Why is this bad?
Each parameter costs a dozen small operations of a few microseconds each, even if it is tiny. A network
with hundreds of small parameters spends more time on these calls than on arithmetic.

## How to fix
`torch.optim.AdamW(..., fused=True)` updates all parameters in one call, on CPU and CUDA; `foreach=True`
is the next best. In a custom optimizer, use `torch._foreach_add_` and similar functions on lists.

## Known problems
Without `clew profile --try` the gain is estimated from the bytes that an update must move and the
measured speed of this machine. Fused and plain updates differ in the last digits.

## References
- PyTorch docs, torch.optim: algorithms and their implementations (for-loop, foreach, fused).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from clew.checks.base import Check
from clew.checks.evidence.speed_gains import (
    Costs,
    WorthwhileGain,
    attempts,
    costs_of,
    expected,
    gain_of,
    helped,
    of_step,
    times,
)
from clew.checks.run_view import RunView
from clew.records.facts.document_facts import ProfileFact
from clew.records.facts.step_facts import OptimizerFact
from clew.records.finding import Evidence, Finding
from clew.records.plural import counted
from clew.records.site import Site
from clew.records.tried_changes import FOREACH, FUSED, TriedChange

# How many times a parameter's bytes are read or written in a fused update: a property of the algorithm.
_MOVED = {"SGD": 5, "Adam": 7, "AdamW": 7, "Adagrad": 5}
_MOST_MOVED = 12  # the same for a custom update


@dataclass(frozen=True)
class OptimizerPerParameter(Check):
    id = "PERF012"
    name = "optimizer-per-parameter"
    needs = (ProfileFact,)

    many: int = 40  # parameters; with fewer the loop over them does not matter
    each: float = 5e-6  # seconds that a parameter costs even in a fused update; a cautious estimate
    lists: int = 4  # operations on lists of parameters in a custom update
    reach: float = 0.3  # share of the machine's bandwidth that an update reaches; a cautious estimate
    gain: WorthwhileGain = field(default_factory=WorthwhileGain)

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        costs = costs_of(run)
        if costs is None:
            return
        known = {optimizer.index: optimizer for optimizer in run.optimizers}
        if len(known) != 1:  # with several, it is not known which one takes the time
            return
        (optimizer,) = known.values()
        if optimizer.implementation in ("for-loop", "own"):
            yield from self._judged(run, costs, optimizer)

    def _judged(self, run: RunView, costs: Costs, made: OptimizerFact) -> Iterator[Finding]:
        held = [name for group in made.groups for name in group.params]
        kind = made.kind
        if len(held) < self.many:
            return
        tried = attempts(run, FUSED, FOREACH)
        own = made.implementation == "own"
        gain = self._gain(run, costs, kind, held, own) if not tried else _measured(tried)
        severity = self.gain.severity(gain)
        if severity is None:
            return
        yield self.finding(
            severity,
            message=f"{kind} updates {len(held)} parameters one by one; updating them together would make "
            f"a step about {times(gain)} as fast",
            fix="update lists of parameters with torch._foreach_add_ and similar functions, or use "
            "torch.optim"
            if own
            else f"torch.optim.{kind}(..., fused=True)",
            site=Site(op="optimizer", file=made.file, line=made.line),
            evidence=[
                expected(
                    gain, f"{of_step(costs['optimizer'], costs)} in the optimizer", measured=bool(tried)
                ),
                Evidence(
                    f"{counted(len(held), 'parameter')}, "
                    f"{costs['optimizer'] / len(held) * 1e6:.3g} µs for each, in Python"
                ),
            ],
        )

    def _gain(self, run: RunView, costs: Costs, kind: str, held: list[str], own: bool) -> float:
        """An estimate from the bytes that any update must move; a custom one can't be fused."""
        speed = costs.profile.roof.bytes if costs.profile.roof is not None else 0.0
        if not speed > 0:
            return 1.0
        calls = self.lists * self.each if own else self.each
        needed = _bytes(run) * _MOVED.get(kind, _MOST_MOVED) / (self.reach * speed) + calls * len(held)
        return costs.gain(costs["optimizer"] - needed)


def _measured(tried: list[TriedChange]) -> float:
    best = next((attempt for attempt in tried if helped(attempt)), None)
    return gain_of(best.gain) if best is not None else 1.0


def _bytes(run: RunView) -> float:
    """Bytes of all parameters that are trained."""
    models = run.models.values()
    return 4.0 * sum(row.numel for model in models for row in model.parameters if row.requires_grad)
