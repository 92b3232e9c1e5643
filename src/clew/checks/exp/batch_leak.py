"""EXP040 batch-leak

## What it detects
A model whose output for one sample depends on the other samples of the batch. In evaluation mode, with
running statistics and without dropout, all samples but one are replaced: the output for the one that
stayed must not change. The finding names the first operation whose result changes.

## Why is this bad?
The prediction for a sample then depends on its neighbours, which differ in every epoch and are absent
when you predict a single sample. Usually a `view`, `reshape`, `softmax(dim=0)` or a matrix product has
mixed up the batch with time or features, and the layers after it see parts of several samples.

## How to fix
Use `transpose` or `permute` to change the order of dimensions; `view` and `reshape` only regroup the
same numbers. Count the dimension of a softmax, mean or norm from the end (`dim=-1`).

## Known problems
Intended batch interaction is not a finding: an output that compares all samples with all others, batch
normalisation without running statistics, edges of a graph as input. Nothing is checked where it is
unknown which dimension holds the samples (time-first data without a loader). Losses may compare samples:
only the outputs of models are checked.

## References
- Karpathy, A recipe for training neural networks, 2019: use backprop to chart dependencies.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.experiment_outcome import curve, op_name
from clew.checks.run_view import RunView
from clew.records.facts.network_experiment_facts import BatchLeakFact
from clew.records.finding import Evidence, Finding, Severity

_CUTS = ("view", "reshape")
_STATISTICS = ("mean", "std", "var", "sub", "div", "norm", "batch_norm")


@dataclass(frozen=True)
class BatchLeak(Check):
    id = "EXP040"
    name = "batch-leak"
    rank = 1410
    needs = (BatchLeakFact,)
    confidence = "certain"

    groups = ("network-faults",)
    caused_by = ("wrong-softmax-dim", "dimension-mixup")

    effect: float = 1e-3  # share of what the sample itself changes; rounding changes a hundred times less

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        found = run.outcome(BatchLeakFact)
        if found is None or found.meant or not found.effect > self.effect:
            return
        site = found.place.site
        # A normalisation by hand with the batch's own mean: usual in some fields, but it fails in inference.
        statistics = site.op in _STATISTICS
        yield self.finding(
            Severity.WARNING if statistics else Severity.ERROR,
            message=f"the output for one sample depends on the other samples of the batch: "
            f"{op_name(run, site)} mixes them",
            fix=_fix(site.op, found.time_first),
            site=site,
            step=0,
            evidence=[
                Evidence(
                    f"with all samples but sample {found.row} replaced, its output changes "
                    f"{found.effect:.2g} times as much as when the sample itself is replaced"
                ),
                *curve(run, self.name),
            ],
            confidence="possible" if statistics else None,
        )

    def unjudged(self, run: RunView) -> str | None:
        found = run.outcome(BatchLeakFact)
        return f"batch interaction is intended here: {found.meant}" if found and found.meant else None


def _fix(op: str | None, time_first: str | None) -> str:
    if time_first:
        return f"{time_first}(…, batch_first=True)  # the samples come first here"
    if op in _CUTS:
        return "x.transpose(0, 1)  # view and reshape regroup numbers, they do not swap dimensions"
    if op in ("softmax", "log_softmax"):
        return "softmax(x, dim=-1)  # not over the batch"
    if op in _STATISTICS:
        return "take means over dim=-1, or keep running statistics for evaluation (nn.BatchNorm1d)"
    return "keep the batch dimension out of this operation"
