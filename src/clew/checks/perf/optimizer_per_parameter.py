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
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.recorded_facts import Data, names, rows, text, whole
from clew.checks.evidence.speed_gains import (
    Costs,
    attempts,
    costs_of,
    expected,
    helped,
    number,
    of_step,
    times,
    times_faster,
    worth,
)
from clew.checks.run_view import RunView
from clew.checks.wording import counted
from clew.records.facts.document_facts import ProfileFact
from clew.records.finding import Evidence, Finding
from clew.records.site import Site
from clew.records.tried_changes import FOREACH, FUSED, Attempt

_MOVED = {"SGD": 5, "Adam": 7, "AdamW": 7, "Adagrad": 5}  # times a parameter's bytes, in a fused update
_MOST_MOVED = 12  # by an update of one's own


@dataclass(frozen=True)
class OptimizerPerParameter(Check):
    id = "PERF012"
    name = "optimizer-per-parameter"
    needs = (ProfileFact,)

    many: int = 40  # parameters from which on the way through them matters
    each: float = 5e-6  # seconds that a parameter costs even in a fused update, on the safe side
    lists: int = 4  # operations on lists of parameters in an update of one's own
    reach: float = 0.3  # share of the machine's bandwidth that an update reaches, on the safe side

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        costs = costs_of(run)
        if costs is None:
            return
        facts = {whole(f.data.get("index")): f.data for f in run.facts("optimizer")}
        slow = [data for data in facts.values() if data.get("implementation") in ("for-loop", "own")]
        if len(facts) == 1 and len(slow) == 1:  # with several, whose time it is can't be told
            yield from self._judged(run, costs, slow[0])

    def _judged(self, run: RunView, costs: Costs, data: Data) -> Iterator[Finding]:
        held = [name for group in rows(data.get("groups")) for name in names(group.get("params"))]
        kind = text(data.get("class")) or "the optimizer"
        if len(held) < self.many:
            return
        tried = attempts(run, FUSED, FOREACH)
        own = data.get("implementation") == "own"
        gain = self._gain(run, costs, kind, held, own) if not tried else _measured(tried)
        severity = worth(gain)
        if severity is None:
            return
        yield self.finding(
            severity,
            message=f"{kind} updates {len(held)} parameters one by one; with all at once, a step would be "
            f"about {times(gain)} as fast",
            fix="update lists of parameters with torch._foreach_add_ and similar functions, or use "
            "torch.optim"
            if own
            else f"torch.optim.{kind}(..., fused=True)",
            site=Site(op="optimizer", file=text(data.get("file")), line=whole(data.get("line"))),
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
        """From the bytes that must be moved, whatever the implementation; own code has no fused one."""
        speed = costs.profile.roof.bytes if costs.profile.roof is not None else 0.0
        if not speed > 0:
            return 1.0
        calls = self.lists * self.each if own else self.each
        needed = _bytes(run) * _MOVED.get(kind, _MOST_MOVED) / (self.reach * speed) + calls * len(held)
        return costs.gain(costs["optimizer"] - needed)


def _measured(tried: list[Attempt]) -> float:
    best = next((attempt for attempt in tried if helped(attempt)), None)
    return times_faster(best) if best is not None else 1.0


def _bytes(run: RunView) -> float:
    """Of all parameters that are trained."""
    return 4.0 * sum(
        number(parameter.get("numel"))
        for fact in {text(f.data.get("root")): f for f in run.facts("model")}.values()
        for parameter in rows(fact.data.get("parameters"))
        if parameter.get("requires_grad") is not False
    )
