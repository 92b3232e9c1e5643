"""EXP004 optimizer-unfit

## What it detects
An optimizer that is far behind at every learning rate. On a snapshot, the program's own optimizer (at
its rate, at ten and a hundred times and a tenth of it), SGD with momentum, Adam and AdamW each train a
few dozen steps from the same start. It is reported if the program's optimizer at its best rate makes
less than a quarter of the progress of the best other one, with each of three shuffles.

## Why is this bad?
Optimizers suit some problems and not others: plain SGD hardly moves embeddings of rare words or a
network that starts at a saddle point, Rprop needs the whole dataset in one batch. No learning rate fixes
that.

## How to fix
Use the named optimizer at the named rate, and tune from there. AdamW at 1e-3 is a good start for nearly
everything; find the rate for SGD with momentum by a range test.

## Known problems
A few dozen steps show how training begins, not how it ends: SGD may start slower and end better. Only a
large difference is reported, and as advice unless the program's optimizer makes almost no progress.

## References
- Schmidt, Schneider and Hennig, Descending through a crowded valley, 2021.
- Zhang et al., Why are adaptive methods good for attention models?, 2020.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from clew.checks.base import Check
from clew.checks.evidence.experiment_outcome import curve
from clew.checks.evidence.learning_rate_evidence import where
from clew.checks.run_view import RunView
from clew.records.facts.learning_experiment_facts import OptimizerUnfitFact
from clew.records.finding import Evidence, Finding, Severity


@dataclass(frozen=True)
class OptimizerUnfit(Check):
    id = "EXP004"
    name = "optimizer-unfit"
    rank = 1440
    needs = (OptimizerUnfitFact,)

    caused_by = ("rate-faults", "wiring-faults", "network-faults", "poor-initialisation", "over-regularised")

    seeds: int = 3  # shuffles of the batches that must show it
    behind: float = 0.25  # share of the best fall; optimizers that fit the problem reach half of each other's
    hardly: float = 0.1  # the same, below which it is more than advice
    moved: float = 0.1  # share of the first loss by which it must fall with the other one

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        found = run.outcome(OptimizerUnfitFact)
        if found is None or len(found.rows) != 2:
            return
        (own, other), start = (row.gains for row in found.rows), found.start
        if min(len(own), len(other)) < self.seeds or not min(other) > self.moved * abs(start):
            return
        share = max(own) / min(other)
        if share > self.behind:
            return
        names = [f"{row.name} at {row.rate:.2g}" for row in found.rows]
        ended, better = (start - median(gains) for gains in (own, other))
        better_one = found.rows[1]
        yield self.finding(
            Severity.WARNING if share < self.hardly else Severity.ADVICE,
            message=f"{found.rows[0].name} does not suit this network: {found.steps} steps take the "
            f"loss from {start:.3g} to {ended:.3g} at its best rate, but to {better:.3g} with {names[1]}",
            fix=f"torch.optim.{better_one.name}(model.parameters(), lr={better_one.rate:.2g})",
            site=where(run, found.line),
            step=0,
            evidence=[
                *curve(run, self.name, 0, f"loss with {names[0]}, its best rate"),
                *curve(run, self.name, 1, f"loss with {names[1]}"),
                Evidence(f"over {len(own)} shuffles it made {share:.0%} of the other's progress"),
            ],
        )
